"""What of the uses of scripts breaks, in the interpreter of an environment of any age; imports nothing of ours.

    python _worker.py REQUESTS RESULTS

REQUESTS is a JSON list of scripts with their uses. For each script a JSON line with its outcomes is appended to
RESULTS, in the order of the uses: null where a use works, else a list of what breaks or the reason why that is open.
Of a call that works, it is the keywords about which nothing is known, where there are some.
"""

import ast
import enum
import functools
import importlib
import importlib.util
import inspect
import json
import os
import re
import sys
import textwrap
import traceback
import types

_SOURCES = {}
_MODULES = {}
_IMPORTS = {}


class Open(Exception):
    """What happens cannot be found out without running the script."""


class Broken(Exception):
    """The use fails, with the kind of the failure and the name that it is about."""

    def __init__(self, kind, name, text):
        super().__init__(kind, name, text)
        self.found = [{"kind": kind, "name": name, "text": text}]


class Reached(BaseException):
    """A wrapper handed its arguments on to what it wraps, which takes them."""


def outcome(use):
    """None where the use works, a list of what breaks in it, or the reason why that is open."""
    try:
        if use["kind"] == "import":
            run_import(use)
        elif use["kind"] == "attribute":
            resolve(use["module"], use["chain"], use["bound"])
        elif use["kind"] == "member":
            read_member(use)
        else:
            swallowed = call(use)
            return {"open": swallowed} if swallowed else None
    except Open as error:
        return str(error)
    except Broken as error:
        return error.found
    return None


def run_import(use):
    top = use["module"].partition(".")[0]
    if not is_installed(top):
        raise Open("not installed: " + top)
    statement = use["statement"]
    if statement not in _IMPORTS:
        _IMPORTS[statement] = None
        try:
            exec(statement, {"__name__": "script"})
        except BaseException as error:  # noqa: BLE001 - what is imported may raise anything
            kind = "import" if is_own(error, use) else "inside"
            name = use["chain"][0] if use["chain"] else use["module"]
            if kind == "import" and isinstance(error, ModuleNotFoundError):
                name = error.name
            _IMPORTS[statement] = kind, name, said(error)
    if _IMPORTS[statement]:
        raise Broken(*_IMPORTS[statement])


@functools.cache
def is_installed(top):
    try:
        return importlib.util.find_spec(top) is not None
    except (ImportError, ValueError):
        return top in sys.modules


def is_own(error, use):
    """Whether the very module or name that is asked for is missing, and not something that it needs itself."""
    if isinstance(error, ModuleNotFoundError):
        asked = use["module"] + "."
        return bool(error.name) and asked.startswith(error.name + ".")
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "importlib" not in frame.filename]
    return isinstance(error, ImportError) and frames[-1].filename == "<string>"


def said(error):
    return f"{type(error).__name__}: {error}"[:300]


def module(name):
    """An imported module; None where there is none. Raises `Open` where it is not installed or cannot be loaded."""
    if not is_installed(name.partition(".")[0]):
        raise Open("not installed: " + name)
    if name not in _MODULES:
        try:
            _MODULES[name] = importlib.import_module(name)
        except BaseException as error:  # noqa: BLE001 - what is imported may raise anything
            missing = (
                isinstance(error, ModuleNotFoundError) and error.name and (name + ".").startswith(error.name + ".")
            )
            _MODULES[name] = None if missing else "its import fails: " + said(error)
    if isinstance(_MODULES[name], str):
        raise Open(_MODULES[name])
    return _MODULES[name]


def resolve(name, chain, bound):
    """The object that a module and attributes lead to, the first ``bound`` of which the import itself takes."""
    found, path = module(name), name
    if found is None:
        raise Open("its import fails")
    for index, attribute in enumerate(chain):
        if not isinstance(found, (types.ModuleType, type)):
            raise Open("it is an object of its own")
        path += "." + attribute
        try:
            found = getattr(found, attribute)
        except AttributeError as error:
            submodule = module(path) if isinstance(found, types.ModuleType) else None
            if submodule is None and index >= bound:
                raise Broken("attribute", attribute, said(error)) from error
            if submodule is None or index >= bound:
                raise Open("it needs an import that fails or is not there") from error
            found = submodule
        except BaseException as error:  # noqa: BLE001 - what is imported may raise anything
            raise Open("it cannot be loaded: " + said(error)) from error
    return found


def made_by(use):
    """The class of the object that a use is about."""
    made = resolve(use["module"], use["chain"][:-1], use["bound"])
    if not isinstance(made, type):
        raise Open("what makes it is no class")
    return made


def read_member(use):
    made, name = made_by(use), use["chain"][-1]
    if not any(re.search(rf"\bself\.{re.escape(name)}\b *[=:,]", source(each)) for each in made.__mro__):
        method(made, name, is_called=False)


def call(use):
    """The keywords that are swallowed by a ``**kwargs`` which may do anything with them."""
    name, chain = use["module"], use["chain"]
    if use["kind"] == "method":
        target = method(made_by(use), chain[-1])
    else:
        target = resolve(name, chain, use["bound"])
    if not callable(target):
        raise Open("it is no callable")
    positional = use["positional"]
    called = chain[-1] if chain else name
    swallowed = []
    for functions, bound in callables(target):
        judge(functions, positional + bound, use["keywords"], called)
        left, rest = unnamed(functions[-1], use["keywords"])
        if rest is not None and functions[-1].__name__ != "__new__":
            swallowed = left
    return handed_on(target, swallowed, called) if isinstance(target, type) else [each["name"] for each in swallowed]


def unnamed(function, keywords):
    """The keywords that a function leaves to its ``**kwargs``, and the name of that."""
    parameters = inspect.signature(function, follow_wrapped=False).parameters.values()
    rest = next((each.name for each in parameters if each.kind is each.VAR_KEYWORD), None)
    return [each for each in keywords if each["name"] not in {one.name for one in parameters}], rest


def handed_on(made, keywords, called):
    """The keywords of which a constructor makes anything but to hand them on; raises `Broken` where a base refuses."""
    for each in made.__mro__:
        constructor = vars(each).get("__init__")
        if not keywords or constructor is not None and not isinstance(constructor, types.FunctionType):
            break
        if constructor is None:
            continue
        functions = layers(constructor)
        keywords, rest = unnamed(functions[-1], keywords)
        if keywords and rest is None and len(functions) == 1:
            text = f"{called}(): {constructor.__qualname__}() takes no {keywords[0]['name']}"
            raise Broken("keyword", keywords[0]["name"], text)
        if keywords and (rest is None or not only_hands_on(functions[-1], rest)):
            break
    return [each["name"] for each in keywords]


def only_hands_on(function, rest):
    """Whether all that a constructor does with its ``**kwargs`` is to give them to that of its base."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == rest]
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and re.match(r"super\(.*\)\.__init__$", ast.unparse(node.func)):
            return used == [each.value for each in node.keywords if each.arg is None]
    return False


def method(made, name, is_called=True):
    """The attribute of a class that an instance would be asked for, bound as an instance would have it."""
    try:
        found = inspect.getattr_static(made, name)
    except AttributeError as error:
        if may_have(made, name):
            raise Open("an instance may have it") from error
        raise Broken("attribute", name, f"{made.__name__} has no {name}") from error
    if isinstance(found, staticmethod) or not is_called:
        return getattr(made, name)
    if isinstance(found, (classmethod, types.FunctionType)):
        return getattr(made, name) if isinstance(found, classmethod) else types.MethodType(found, object())
    raise Open("it is no plain method")


def may_have(made, name):
    """Whether instances of a class may have an attribute that the class itself lacks."""
    for each in made.__mro__:
        if each is object:
            continue
        own = vars(each)
        if ("__getattr__" in own or "__getattribute__" in own) and not each.__module__.startswith("torch.nn"):
            return True
        if (
            "setattr(self" in source(each)
            or re.search(rf"\b{re.escape(name)}\b(?!\()", source(each))
            or name in own.get("__annotations__", {})
        ):
            return True
        if source(each) == "" and not each.__module__.startswith(("builtins", "abc")):
            return True
    return False


def source(each):
    if each not in _SOURCES:
        try:
            _SOURCES[each] = inspect.getsource(each)
        except (OSError, TypeError):
            _SOURCES[each] = ""
    return _SOURCES[each]


def callables(target):
    """The functions that a call runs, each with its wrappers and the number of arguments it gets besides."""
    if isinstance(target, type):
        meta = type(target)
        if issubclass(target, enum.Enum) or "__call__" in vars(meta) and meta is not type:
            raise Open("its class decides")
        own = [vars(each) for each in target.__mro__ if each is not object]
        found = [next((each[name] for each in own if name in each), None) for name in ("__new__", "__init__")]
        functions = [getattr(each, "__func__", each) for each in found if each is not None]
        plain = [each for each in functions if isinstance(each, types.FunctionType)]
        if functions and not plain:
            raise Open("it is written in another language")
        for each in plain or [takes_nothing]:
            yield layers(each), 1
        return
    bound = 0
    if isinstance(target, types.MethodType):
        target, bound = target.__func__, 1
    if not isinstance(target, types.FunctionType):
        raise Open("it is no plain function")
    yield layers(target), bound


def takes_nothing(self):
    """What a class without a constructor of its own takes."""


def layers(function):
    """A function and what it wraps, the outermost first."""
    found = [function]
    while isinstance(getattr(found[-1], "__wrapped__", None), types.FunctionType) and len(found) < 20:
        found.append(found[-1].__wrapped__)
    return found


def judge(found, positional, keywords, name):
    """Raise `Broken` where the arguments do not fit the outermost function, or what it hands them on to."""
    names = [each["name"] for each in keywords]
    signatures = [inspect.signature(each, follow_wrapped=False) for each in found]
    for signature in signatures[:-1]:
        refuse(signature, positional, keywords, name)
    if misfit(signatures[-1], positional, names) is None:
        return
    if len(found) > 1:
        replayed = replay(found, signatures[-1], positional, names)
        if replayed == "taken":
            return
    refuse(signatures[-1], positional, keywords, name)


def replay(found, signature, positional, names):
    """What the wrappers make of the arguments before they reach the innermost function."""

    def innermost(*arguments, **given):
        signature.bind(*arguments, **given)
        raise Reached

    probe = functools.wraps(found[-1])(innermost)
    for wrapper, inner in zip(reversed(found[:-1]), reversed(found[1:])):
        if not isinstance(wrapper, types.FunctionType) or not wrapper.__closure__:
            raise Open("its wrapper hides what it wraps")
        cells = [types.CellType(probe) if cell_is(cell, inner) else cell for cell in wrapper.__closure__]
        if not any(cell_is(cell, inner) for cell in wrapper.__closure__):
            raise Open("its wrapper hides what it wraps")
        copy = types.FunctionType(
            wrapper.__code__, wrapper.__globals__, wrapper.__name__, wrapper.__defaults__, tuple(cells)
        )
        copy.__kwdefaults__ = wrapper.__kwdefaults__
        probe = functools.wraps(inner)(copy)
    try:
        probe(*[object() for _ in range(positional)], **{name: object() for name in names})
    except Reached:
        return "taken"
    except TypeError as error:
        if "argument" in str(error):
            return "refused"
        raise Open("its wrapper raises " + said(error)) from error
    except BaseException as error:  # noqa: BLE001 - what is imported may raise anything
        raise Open("its wrapper raises " + said(error)) from error
    raise Open("its wrapper does not call it")


def cell_is(cell, value):
    try:
        return cell.cell_contents is value
    except ValueError:
        return False


def misfit(signature, positional, names):
    try:
        signature.bind(*[None] * positional, **dict.fromkeys(names))
    except TypeError as error:
        return error
    return None


def refuse(signature, positional, keywords, name):
    """Raise `Broken` with everything that does not fit a signature."""
    error = misfit(signature, positional, [each["name"] for each in keywords])
    if error is None:
        return
    parameters = signature.parameters.values()
    by_name = {each.name for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)}
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
    places = [each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    endless = any(each.kind is each.VAR_POSITIONAL for each in parameters)
    found = []
    for each in keywords:
        if each["name"] not in by_name and not takes_any:
            found.append({"kind": "keyword", "name": each["name"], "line": each["line"]})
    if positional > len(places) and not endless:
        found.append({"kind": "positional", "name": name})
    given = {each.name for each in places[:positional]} | {each["name"] for each in keywords}
    plain = [each for each in parameters if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]
    if any(each.default is each.empty and each.name not in given for each in plain):
        found.append({"kind": "missing", "name": name})
    broken = Broken("positional", name, "")
    broken.found = [{**each, "text": f"{name}(): {error}"} for each in found] or [
        {"kind": "positional", "name": name, "text": f"{name}(): {error}"}
    ]
    raise broken


def safely(use):
    try:
        return outcome(use)
    except Exception as error:  # noqa: BLE001 - one odd object leaves the others
        return "the worker raised " + said(error)


def main():
    with open(sys.argv[1]) as stream:
        scripts = json.load(stream)
    os.dup2(2, 1)
    for script in scripts:
        with open(sys.argv[2], "a") as stream:
            stream.write(json.dumps({"begins": script["file"]}) + "\n")
        outcomes = [safely(use) for use in script["uses"]]
        with open(sys.argv[2], "a") as stream:
            stream.write(json.dumps({"file": script["file"], "outcomes": outcomes}) + "\n")
    os._exit(0)


if __name__ == "__main__":
    main()
