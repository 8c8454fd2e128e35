"""The annotation of a parameter that takes a window."""

from __future__ import annotations

from typing import Any

from pypto.language.annotations import Tensor, WindowAnnotation


class DistributedTensor(Tensor):
    """A parameter that is a window: written like ``pl.Tensor``. Its name stands for the part of the rank that runs."""

    def __class_getitem__(cls, item: Any) -> Any:
        return WindowAnnotation(item)
