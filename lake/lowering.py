"""From Numba's typed statements to LLVM's: what is simpler where a function works on arrays that it is given.

Numba keeps a variable that is used in several blocks in memory, and copies an array's seven fields there to read one of
them. LLVM finds out that no memory is needed, which takes it, and the Python that writes the statements, as long as all
the rest. Here a variable that is set once is a value, and an element's address is made from the fields that it needs.
"""

from __future__ import annotations

from typing import Any, Final, cast

from numba.core import analysis, cgutils, ir, lowering, typed_passes, types
from numba.core.compiler_machinery import register_pass
from numba.np import arrayobj

ITEMS: Final = (types.Number, types.Boolean)


class KernelLower(cast(Any, lowering).Lower):  # type: ignore[misc]
    """The statements of a kernel that makes no arrays: nothing that it holds is counted."""

    def _find_singly_assigned_variable(self) -> None:
        """Variables that are values: set by one statement, and read in its block or where only it leads to."""
        blocks = self.func_ir.blocks
        dominators = cast(Any, analysis).compute_cfg_from_blocks(blocks).dominators()
        assigned: dict[str, list[int]] = {}
        for label, block in blocks.items():
            for statement in block.find_insts(ir.Assign):
                assigned.setdefault(statement.target.name, []).append(label)
        known = cast(Any, analysis).compute_use_defs(blocks)
        read: dict[str, set[int]] = {}
        for label, names in known.usemap.items():
            for name in names:
                read.setdefault(name, set()).add(label)
        # Blocks are written in the order of their labels: a value is there before its readers are.
        self._singly_assigned_vars = {
            name
            for name, labels in assigned.items()
            if len(labels) == 1
            and all(labels[0] < label and labels[0] in dominators[label] for label in read.get(name, ()))
        }
        self._blk_local_varmap: dict[str, Any] = {}

    def lower_inst(self, inst: Any) -> None:
        """Writes one statement; most are assignments."""
        if type(inst) is ir.Assign and type(inst.value) is not ir.Arg:
            name = inst.target.name
            self.storevar(self.lower_assign(self.typeof(name), inst), name)
        else:
            super().lower_inst(inst)

    def storevar(self, value: Any, name: str, argidx: int | None = None) -> None:
        """Sets a variable; who held what it was before is not counted. For a debugger all of them are in memory."""
        if name in self._singly_assigned_vars and not self._disable_sroa_like_opt:
            self._blk_local_varmap[name] = value
            return
        self._alloca_var(name, self.typeof(name))
        self.builder.store(value, self.varmap[name])

    def lower_getitem(self, resty: Any, expr: Any, value: Any, index: Any, signature: Any) -> Any:
        """An element of an array."""
        pointer = self._element(signature, value, index)
        if pointer is None:
            return super().lower_getitem(resty, expr, value, index, signature)
        item = cast(Any, arrayobj).load_item(self.context, self.builder, signature.args[0], pointer)
        return self.context.cast(self.builder, item, signature.return_type, resty)

    def lower_setitem(self, target_var: Any, index_var: Any, value_var: Any, signature: Any) -> Any:
        """Sets an element of an array."""
        array = signature.args[0]
        pointer = self._element(signature, target_var, index_var)
        if pointer is None:
            return super().lower_setitem(target_var, index_var, value_var, signature)
        value = self.loadvar(value_var.name)
        value = self.context.cast(self.builder, value, self.typeof(value_var.name), array.dtype)
        cast(Any, arrayobj).store_item(self.context, self.builder, array, value, pointer)
        return None

    def _element(self, signature: Any, value: Any, index: Any) -> Any:
        """Where an element is; None unless it is a number of an array without gaps, at a place for each axis."""
        array, place = signature.args[:2]
        if not (isinstance(array, types.Array) and array.layout == "C" and isinstance(array.dtype, ITEMS)):
            return None
        kinds: list[Any] = list(cast(Any, place)) if isinstance(place, types.BaseTuple) else [place]
        if len(kinds) != array.ndim or not all(isinstance(kind, types.Integer) for kind in kinds):
            return None
        builder = self.builder
        held = self.loadvar(value.name)
        at = self.context.cast(builder, self.loadvar(index.name), self.typeof(index.name), place)
        steps = [at] if isinstance(place, types.Integer) else cast(Any, cgutils).unpack_tuple(builder, at, len(kinds))
        return self._address(array, held, kinds, steps)

    def _address(self, array: Any, held: Any, kinds: list[Any], steps: list[Any]) -> Any:
        builder = self.builder
        fields = self.context.data_model_manager[array]
        shape = builder.extract_value(held, fields.get_field_position("shape"))
        offset = None
        for axis, (kind, step) in enumerate(zip(kinds, steps, strict=True)):
            size = builder.extract_value(shape, axis)
            place = cast(Any, arrayobj).fix_integer_index(self.context, builder, kind, step, size)
            offset = place if offset is None else builder.add(builder.mul(offset, size), place)
        return builder.gep(builder.extract_value(held, fields.get_field_position("data")), [offset])


@cast(Any, register_pass)(mutates_CFG=True, analysis_only=False)
class LowerKernel(typed_passes.NativeLowering):
    """Numba's own pass with ``KernelLower``, where nothing is counted."""

    _name = "lower_kernel"

    @property
    def lowering_class(self) -> Any:
        """What writes LLVM's statements."""
        return KernelLower
