"""Arguments of a JIT function: which parameter each one is for, and what a specialization has to know of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pypto.build.specialize import TensorMeta, tensor_meta
from pypto.language.signature import Signature, SignatureParam

_MISSING = object()


def bind_call(signature: Signature, arguments: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """Arguments of a call in parameter order, with the defaults of scalars filled in.

    Raises:
        TypeError: too many arguments, an unknown or repeated name, or a missing one.
    """
    bound = _bind(signature, arguments, named)
    values = []
    for parameter in signature.params:
        value = bound.get(parameter.name, parameter.default if parameter.has_default else _MISSING)
        if value is _MISSING:
            missing = [p.name for p in signature.params if p.name not in bound and not p.has_default]
            raise TypeError(f"{signature.name}() lacks {_listed(missing)}; it takes {_listed(_names(signature))}")
        values.append(value)
    return values


def sample_tensors(signature: Signature, samples: Sequence[Any], named: Mapping[str, Any]) -> dict[str, TensorMeta]:
    """Metadata of the sample tensors that were given; missing samples, ``None`` and all scalars are left out.

    Raises:
        TypeError: as `bind_call`, except that nothing has to be given; or a sample that is no tensor, or a tensor for a
            scalar parameter.
    """
    metas = {}
    bound = _bind(signature, samples, named)
    for parameter in signature.params:
        value = bound.get(parameter.name)
        if value is None:
            continue
        try:
            meta = tensor_meta(value)
        except TypeError as error:
            raise TypeError(f"argument {parameter.name!r} of {signature.name}(): {error}") from None
        if parameter.is_tensor:
            if meta is None:
                raise TypeError(
                    f"argument {parameter.name!r} of {signature.name}() is a tensor: an array or a TensorSpec with a "
                    f"dtype of the language, got {_shown(value)}{_wanted(parameter)}"
                )
            metas[parameter.name] = meta
        elif meta is not None and meta.shape != ():
            raise TypeError(f"argument {parameter.name!r} of {signature.name}() is a number, got a tensor {meta}")
    return metas


def rank_samples(value: Any) -> Any:
    """A sample of a HOST entry: a list with one array for each rank as one tensor, anything else as it is."""
    if not isinstance(value, (list, tuple)) or not value:
        return value
    metas = [tensor_meta(part) for part in value]
    first = metas[0]
    # Lists of anything else, and of arrays that differ, are refused where arguments are bound.
    return value if first is None else TensorMeta(first.dtype, (len(value), *first.shape))


def _bind(signature: Signature, arguments: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    names = _names(signature)
    if len(arguments) > len(names):
        raise TypeError(
            f"{signature.name}() takes {len(names)} arguments ({_listed(names)}), {len(arguments)} were given"
        )
    bound = dict(zip(names, arguments, strict=False))
    for name, value in named.items():
        if name not in names:
            raise TypeError(f"{signature.name}() has no parameter {name!r}; it takes {_listed(names)}")
        if name in bound:
            raise TypeError(f"{signature.name}() got argument {name!r} twice, by position and by name")
        bound[name] = value
    return bound


def _wanted(parameter: SignatureParam) -> str:
    return f"; its annotation says {parameter.dtype}" if parameter.dtype is not None else ""


def _names(signature: Signature) -> list[str]:
    return [parameter.name for parameter in signature.params]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _shown(value: object) -> str:
    text = repr(value)
    kind = type(value).__name__
    dtype = getattr(value, "dtype", None)
    if dtype is not None:
        return f"{kind} of dtype {dtype}"
    return text if len(text) <= 60 else f"a {kind}"
