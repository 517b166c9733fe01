"""Wheels of the locks' source distributions, by recipe: the named files are copied, and no setup.py runs. Python 2.7 and 3.

A recipe is for the bytes of one source distribution, and has the sha256 of the wheel that it yields: members are stored in one
order with one time, so it is the same wheel on every host. tests/long/test_source_wheels.py builds each one with pip and compares.
"""

import base64
import collections
import contextlib
import hashlib
import os
import tarfile
import zipfile

MOMENT = (1980, 1, 1, 0, 0, 0)  # the first that a zip file knows
BOTH, PYTHON2 = ("py2", "py3"), ("py2",)

# wheel: its name up to the tags. sha256: of the wheel. modules: directories, or files, whose .py files it has; a leading src/ is
# left out. left: a directory that is not part of it. about: files for its dist-info. requires: what setup.py states.
Recipe = collections.namedtuple("Recipe", ("wheel", "sha256", "modules", "left", "about", "requires", "pythons"))


def _recipe(wheel, sha256, modules, left=None, about="LICENSE", requires=(), pythons=BOTH):
    return Recipe(wheel, sha256, modules, left, about.split(), requires, pythons)


RECIPES = {  # by the sha256 of the source distribution
    "72d782fbeafba66ba3e525d46bccac949b9a174dbf66233e50ece09ee688dc81": _recipe(
        "absl_py-0.15.0",
        "41c7d35e741880ffb5e43fa3c8b217cb1eb0ad02cd4c5ee6cc513d1b3ea5f4ae",
        "absl/",
        None,
        "AUTHORS LICENSE",
        ("six", 'enum34; python_version < "3.4"'),
    ),
    "ceccae97eda0225a5b44d42ffd61102e248325c2865ca53e4407746464a5333a": _recipe(
        "clang-5.0",
        "58fdd69daca520d9e8473f6d0b3c2892ec7974b3532125a8264ab3f063838c4e",
        "clang/",
        about="",
    ),
    "f6253dfbe0538ad2e387bd8fdfd9293c925d63553f5813c4e587745416501e6d": _recipe(
        "functools32-3.2.3.post2",
        "15ca5fc97ca54536e06be79a87f5ea64a17beaeefc29addace42932946dea5be",
        "functools32/",
        pythons=PYTHON2,
    ),
    "fe939df4583692f0512161ec1c880e0a10e71e6a232da045ab8edd3756fbadf0": _recipe(
        "gast-0.2.2", "e6f1da9c7e4a3b3ae1e8711751fb8befc81c652453adf1f32d54d29bfe47f290", "gast/"
    ),
    "2612a191a8d5842bfa057e41ba50bbb9dcb722419d2408c78cff4758d0754868": _recipe(
        "html5lib-0.9999999",
        "83d6d5e7c5014288955ac98b09f9d11b9537a73dd6bb309fe752a83772706d44",
        "html5lib/",
        "html5lib/tests/",
        requires=("six",),
    ),
    "5579f9a12bcde9748f4a12233925a59b93b73ae6947409ff34aa2ba258189fe5": _recipe(
        "Keras_Applications-1.0.8",
        "7dd04187f1989704a2db2539d95287cec336fadbbad8811d583352885c0633d1",
        "keras_applications/",
        requires=("numpy>=1.9.1", "h5py"),
    ),
    "d3d464b4da7ef09e444c30e4003a27def37f85ff10ff2671e5f7d7813adac35b": _recipe(
        "opt_einsum-2.3.2",
        "35cec408e54d4ed8d44770b4149b324744fa8c4668452c88bc6416c405e87411",
        "opt_einsum/",
        requires=("numpy>=1.7",),
    ),
    "1d6d69ce66211143803fbc56652b41d73b4a400a2891d7bf7a1cdf4c02de613b": _recipe(
        "termcolor-1.1.0",
        "a53e8f20dd020980e406a57065342c4a26c1c81e04a6e3b1435e55baaa13c07a",
        "termcolor.py",
        about="COPYING.txt",
    ),
    "b62ffa81fb85f4332a4f609cab4ac40709470da05643a082ec1eb88e6d9b97d7": _recipe(  # without its optional C code
        "wrapt-1.12.1", "1f54e7e5b41faac34405065bf988df46e309d280f8ffd8c2582956ad664c9587", "src/wrapt/"
    ),
}


class NoWheel(Exception):
    """Why a source distribution cannot become a wheel, and what to do."""


def is_wheel(name):
    return name.endswith(".whl")


def recipe_of(name, sha256):
    """The recipe of a source distribution in a lock; NoWheel without one."""
    if sha256 not in RECIPES:
        raise NoWheel(
            "%s is a source distribution, and no setup.py is run. Build a wheel of it (pip wheel --no-deps) and put that into "
            "the package index of the site" % name
        )
    return RECIPES[sha256]


def file_name(recipe):
    return "%s-%s-none-any.whl" % (recipe.wheel, ".".join(recipe.pythons))


def make(name, sha256, source, directory):
    """Path of the wheel, which is new in the directory. source: the file, which has this sha256."""
    recipe = recipe_of(name, sha256)
    files = files_of(source, recipe)
    path = os.path.join(directory, file_name(recipe))
    with contextlib.closing(zipfile.ZipFile(path, "w")) as archive:
        for member in sorted(files):
            info = zipfile.ZipInfo(member, MOMENT)
            info.external_attr, info.create_system = 0o100644 << 16, 3
            archive.writestr(info, files[member])
    with open(path, "rb") as handle:
        digest = hashlib.sha256(handle.read()).hexdigest()
    if digest != recipe.sha256:
        raise NoWheel(
            "The wheel of %s must have the sha256 %s but has %s: the recipe in source_wheels.py is wrong"
            % (name, recipe.sha256, digest)
        )
    return path


def files_of(source, recipe):
    """Member of the wheel -> its bytes."""
    information, files = recipe.wheel + ".dist-info/", {}
    with contextlib.closing(tarfile.open(source)) as archive:  # novermin
        for member in archive:
            path = member.name.partition("/")[2]
            name = member_of(path, recipe) if member.isfile() else None
            if name is not None:
                content = archive.extractfile(member).read()
                files[name] = metadata(content, recipe) if path == "PKG-INFO" else content
    top = recipe.modules.replace("src/", "").replace(".py", "").strip("/")
    tags = "".join("Tag: %s-none-any\n" % python for python in recipe.pythons)
    files[information + "top_level.txt"] = (top + "\n").encode("ascii")
    files[information + "WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: hadoop-deeplearning\nRoot-Is-Purelib: true\n" + tags
    ).encode("ascii")
    record = "".join("%s,%s\n" % (member, recorded(files[member])) for member in sorted(files))
    files[information + "RECORD"] = (record + information + "RECORD,,\n").encode("ascii")
    return files


def member_of(path, recipe):
    """Where a file of the source distribution is in the wheel; None for one that is not in it."""
    if path == "PKG-INFO":
        return recipe.wheel + ".dist-info/METADATA"
    if path in recipe.about:
        return recipe.wheel + ".dist-info/" + path
    is_left_out = recipe.left is not None and path.startswith(recipe.left)
    if is_left_out or not path.startswith(recipe.modules) or not path.endswith(".py"):
        return None
    return path[len("src/") :] if path.startswith("src/") else path


def metadata(text, recipe):
    """PKG-INFO as a wheel has it: with requirements, and the version as PEP 440 writes it."""
    own = "Metadata-Version: 2.1\nVersion: %s\n" % recipe.wheel.partition("-")[2]
    own += "".join("Requires-Dist: %s\n" % requirement for requirement in recipe.requires)
    lines = [line for line in text.splitlines(True) if not line.startswith((b"Metadata-Version:", b"Version:"))]
    return own.encode("ascii") + b"".join(lines)


def recorded(content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode("ascii")
    return "sha256=%s,%d" % (digest, len(content))
