# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of pure integer functions to XLS IR.

A function may have branches, but neither loops nor memory: clang has unrolled the first, and the
datapath uses none of the second. Branches become selections, each block with the condition under
which it is reached. What stands in the IR and is not known here is an error with its text, so
nothing is left out in silence.
"""
import llvmlite.binding as llvm

BINARY = {'add': 'add', 'sub': 'sub', 'mul': 'umul', 'and': 'and', 'or': 'or', 'xor': 'xor',
          'shl': 'shll', 'lshr': 'shrl', 'ashr': 'shra'}
CHOICE = {'umin': 'ult', 'umax': 'ugt', 'smin': 'slt', 'smax': 'sgt'}
PREDICATES = {'eq', 'ne', 'ult', 'ule', 'ugt', 'uge', 'slt', 'sle', 'sgt', 'sge'}
PRODUCT = 24, 17  # bits of product()'s operands
# product() as XLS takes a module that is not its own.
PRODUCT_IR = '''#[ffi_proto("""code_template: "mr_hls_product {{fn}} (.a_i({{a}}), .b_i({{b}}), .p_o({{return}}))"
""")]
fn product(a: bits[{0}], b: bits[{1}]) -> bits[{2}] {{
  ret p: bits[{2}] = umul(a, b)
}}
'''.format(*PRODUCT, sum(PRODUCT))


class Untranslatable(Exception):
    """What the IR has and this program does not know."""


def load(text):
    """The module of `text`, each value named and each switch made of branches."""
    llvm.initialize_native_target()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine()
    passes = llvm.create_new_module_pass_manager()
    passes.add_lower_switch_pass()
    passes.add_instruction_namer_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return module


def width(value):
    kind = str(value.type)
    if not kind.startswith('i'):
        raise Untranslatable(f'{value}: type {kind}; only integers are translated')
    return int(kind[1:])


class Function:
    """One function; `text` is its XLS IR."""

    def __init__(self, function, name, names):
        """`names`: what its arguments are called in the Verilog."""
        self.lines = []
        self.values = {}
        arguments = list(function.arguments)
        if len(arguments) != len(names):
            raise Untranslatable(f'{name}: {len(arguments)} arguments, {len(names)} names')
        parameters = []
        for argument, called in zip(arguments, names):
            self.values[argument.name] = called
            parameters.append(f'{called}: bits[{width(argument)}]')
        self.edges = {}  # (block, successor) -> condition under which it is taken
        for block in self._in_order(function):
            self._block(block)
        self.text = (f'top fn {name}({", ".join(parameters)}) -> bits[{self.bits}] {{\n'
                     + '\n'.join(self.lines) + f'\n  ret {name}_result: bits[{self.bits}] = '
                     f'identity({self.result})\n}}\n')

    @staticmethod
    def _successors(block):
        last = list(block.instructions)[-1]
        return [o.name for o in last.operands if str(o.type) == 'label']

    def _in_order(self, function):
        """The blocks, each behind all from which it is reached."""
        blocks = {b.name: b for b in function.blocks}
        order, state = [], {}

        def visit(name):
            if state.get(name) == 'open':
                raise Untranslatable(f'{function.name} has a loop; unroll it')
            if name in state:
                return
            state[name] = 'open'
            for successor in self._successors(blocks[name]):
                visit(successor)
            state[name] = 'done'
            order.append(blocks[name])

        visit(next(iter(blocks)))
        return order[::-1]

    def _emit(self, bits, expression):
        name = f'v{len(self.lines)}'
        self.lines.append(f'  {name}: bits[{bits}] = {expression}')
        return name

    def _literal(self, bits, value):
        return self._emit(bits, f'literal(value={value % (1 << bits)})')

    def _value(self, operand):
        if not operand.is_constant:
            return self.values[operand.name]
        text = str(operand).split()[-1]
        number = {'true': 1, 'false': 0}.get(text)
        try:
            return self._literal(width(operand), int(text) if number is None else number)
        except ValueError:
            raise Untranslatable(f'constant {operand}') from None

    def _select(self, condition, yes, no, bits):
        return self._emit(bits, f'sel({condition}, cases=[{no}, {yes}])')

    def _block(self, block):
        reached = [c for (_, to), c in self.edges.items() if to == block.name]
        here = reached[0] if reached else None  # None: always
        for condition in reached[1:]:
            here = self._emit(1, f'or({here}, {condition})')
        for instruction in block.instructions:
            self._instruction(block, here, instruction)

    def _instruction(self, block, here, i):
        op = i.opcode
        if op == 'br':
            self._branch(block, here, i)
        elif op == 'ret':
            returned = next(iter(i.operands))
            self.bits, self.result = width(returned), self._value(returned)
        elif op == 'phi':
            self.values[i.name] = self._phi(block, i)
        else:
            self.values[i.name] = self._expression(op, i)

    def _branch(self, block, here, i):
        operands = list(i.operands)
        if len(operands) == 1:
            self._edge(block, operands[0], here or self._literal(1, 1))
            return
        condition, no, yes = operands  # LLVM keeps the false successor first
        taken = self._value(condition)
        for target, holds in ((yes, taken), (no, self._emit(1, f'not({taken})'))):
            self._edge(block, target, self._emit(1, f'and({here}, {holds})') if here else holds)

    def _edge(self, block, target, condition):
        key = block.name, target.name
        if key in self.edges:
            condition = self._emit(1, f'or({self.edges[key]}, {condition})')
        self.edges[key] = condition

    def _phi(self, block, i):
        """One of the edges is taken, so the last value needs no condition."""
        values = [self._value(o) for o in i.operands]
        edges = [self.edges[b.name, block.name] for b in i.incoming_blocks]
        result = values[-1]
        for value, edge in zip(values[-2::-1], edges[-2::-1]):
            result = self._select(edge, value, result, width(i))
        return result

    def _expression(self, op, i):
        operands = list(i.operands)
        if op == 'call':
            return self._call(i, operands)
        bits, values = width(i), [self._value(o) for o in operands]
        if op in BINARY:
            return self._emit(bits, f'{BINARY[op]}({values[0]}, {values[1]})')
        if op == 'icmp':
            words = str(i).split(' icmp ')[1].replace('samesign ', '').split()
            if words[0] in PREDICATES:
                return self._emit(1, f'{words[0]}({values[0]}, {values[1]})')
        if op == 'select':
            return self._select(values[0], values[1], values[2], bits)
        if op in ('zext', 'sext'):
            extend = 'zero_ext' if op == 'zext' else 'sign_ext'
            return self._emit(bits, f'{extend}({values[0]}, new_bit_count={bits})')
        if op == 'trunc':
            return self._emit(bits, f'bit_slice({values[0]}, start=0, width={bits})')
        if op == 'freeze':
            return values[0]
        raise Untranslatable(str(i).strip())

    def _call(self, i, operands):
        callee, bits = operands[-1].name, width(i)
        if callee == 'product':
            return self._product(bits, *(self._value(o) for o in operands[:2]))
        kind = callee.split('.')[1] if callee.startswith('llvm.') else None
        a = self._value(operands[0])
        if kind in CHOICE:
            b = self._value(operands[1])
            return self._select(self._emit(1, f'{CHOICE[kind]}({a}, {b})'), a, b, bits)
        if kind == 'abs':
            minus = self._emit(1, f'slt({a}, {self._literal(bits, 0)})')
            return self._select(minus, self._emit(bits, f'neg({a})'), a, bits)
        if kind == 'ctlz':
            first = self._emit(bits + 1, f'one_hot({self._emit(bits, f"reverse({a})")}, '
                               'lsb_prio=true)')
            count = bits.bit_length()
            number = self._emit(count, f'encode({first})')
            return self._emit(bits, f'zero_ext({number}, new_bit_count={bits})')
        if kind == 'fshl' and operands[2].is_constant:  # a:b to the left, its upper half
            by, b = int(str(operands[2]).split()[-1]), self._value(operands[1])
            high = self._emit(bits - by, f'bit_slice({a}, start=0, width={bits - by})')
            low = self._emit(by, f'bit_slice({b}, start={bits - by}, width={by})')
            return self._emit(bits, f'concat({high}, {low})')
        raise Untranslatable(str(i).strip())

    def _product(self, bits, a, b):
        """A module of its own; datapath.h says that its operands have these bits."""
        operands = (self._emit(n, f'bit_slice({x}, start=0, width={n})')
                    for x, n in ((a, PRODUCT[0]), (b, PRODUCT[1])))
        result = self._emit(sum(PRODUCT), f'invoke({", ".join(operands)}, to_apply=product)')
        return self._emit(bits, f'zero_ext({result}, new_bit_count={bits})')
