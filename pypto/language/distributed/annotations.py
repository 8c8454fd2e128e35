"""The annotation of a chip's parameter that takes a window."""

from __future__ import annotations

from typing import Any

from pypto.language.annotations import Tensor, TensorAnnotation


class DistributedTensor(Tensor):
    """A tensor parameter whose argument is a rank's own part of a window: written like ``pl.Tensor``."""

    def __class_getitem__(cls, item: Any) -> Any:
        return TensorAnnotation(item)
