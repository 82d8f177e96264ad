"""Changes of one thing in one module: where they can be made, a fair sample of them, and the changed text."""

import ast
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import parso
from cosmic_ray import plugins
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator

#: Operators whose changes are other programs' mistakes: nobody adds or forgets a plus sign by accident.
UNLIKELY = (
    "NumberReplacer",
    "UnaryOperator_UAdd",
    "UnaryOperator_USub_UAdd",
    "VariableReplacer",
    "VariableInserter",
)


class ForgetCall(Operator):
    """A statement that is nothing but a call is left out: like a forgotten sync, close or check."""

    def mutation_positions(self, node):
        if node.type == "simple_stmt" and self._is_call(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node, index):
        nothing = parso.parse("pass").children[0]
        nothing.get_first_leaf().prefix = node.children[0].get_first_leaf().prefix
        node.children[0] = nothing
        return node

    @staticmethod
    def _is_call(node):
        if node.type not in ("atom_expr", "power"):
            return False
        return node.children[-1].type == "trailer" and node.children[-1].children[0].value == "("

    @classmethod
    def examples(cls):
        return (Example("sync(fd)\n", "pass\n"),)


class NumberByOne(Operator):
    """A whole number is one larger."""

    def mutation_positions(self, node):
        if node.type == "number" and node.value.isdigit():
            yield node.start_pos, node.end_pos

    def mutate(self, node, index):
        node.value = str(int(node.value) + 1)
        return node

    @classmethod
    def examples(cls):
        return (Example("x = 1", "x = 2"),)


@dataclass(frozen=True)
class Mutant:
    """One change at ``line``; ``before`` and ``text`` are the whole module without and with it."""

    path: str
    line: int
    operator: str
    before: str
    text: str

    def picture(self):
        """The line before and after."""
        before = self.before.splitlines()
        after = self.text.splitlines()
        at = next(
            (n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]),
            self.line - 1,
        )
        return f"{self.path}:{at + 1} {self.operator}\n  - {before[at].strip()}\n  + {after[at].strip()}"


def operators():
    """Name → operator, those without arguments of cosmic-ray and ours."""
    found = {"ForgetCall": ForgetCall(), "NumberByOne": NumberByOne()}
    for name in plugins.operator_names():
        made = plugins.get_operator(name)
        if not made.arguments() and not any(unlikely in name for unlikely in UNLIKELY):
            found[name.removeprefix("core/")] = made()
    return found


def places(root, packages):
    """(path, position) → the changes that can be made there, as (operator name, occurrence)."""
    found = defaultdict(list)
    known = operators()
    for package in packages:
        for path in sorted(Path(root, package).rglob("*.py")):
            nodes = list(ast_nodes(get_ast(path.read_text())))
            for name, operator in known.items():
                at = (position for node in nodes for position in operator.mutation_positions(node))
                for occurrence, (start, end) in enumerate(at):
                    found[str(path.relative_to(root)), start, end].append((name, occurrence))
    return found


def sample(root, packages, count, seed):
    """``count`` places drawn with ``seed``, and one change drawn at each.

    A comparison can be changed in many ways, a call only in one: places are drawn, so that both count alike.
    Changes that only annotations and assertions see are drawn again.
    """
    dice = random.Random(seed)
    found = places(root, packages)
    order = sorted(found)
    dice.shuffle(order)
    drawn = []
    known = operators()
    for place in order:
        if len(drawn) == count:
            break
        name, occurrence = dice.choice(found[place])
        path, (line, _column), _end = place
        before = Path(root, path).read_text()
        try:
            text = mutate_code(before, known[name], occurrence)
        except AttributeError:
            # Cosmic-ray's operator for exceptions knows no names with dots.
            continue
        if text is not None and _meaning(text) not in (None, _meaning(before)):
            drawn.append(Mutant(path, line, name, before, text))
    return drawn, len(order)


class _WithoutWords(ast.NodeTransformer):
    """Takes annotations and assertions out of a tree."""

    def visit_Assert(self, node):
        return ast.Pass()

    def visit_AnnAssign(self, node):
        node.annotation = ast.Constant(None)
        return node

    def visit_arg(self, node):
        node.annotation = None
        return node

    def visit_FunctionDef(self, node):
        node.returns = None
        return self.generic_visit(node)


def _meaning(text):
    """A picture of what Python runs; None when it is no Python."""
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return None
    return ast.dump(_WithoutWords().visit(tree))
