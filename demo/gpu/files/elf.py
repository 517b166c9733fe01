#!/usr/bin/python3
"""Write small, true ELF files for x86-64: kernel modules that modinfo reads, libraries that ldconfig and dlopen accept.

    elf.py module PATH name=nvidia version=535.104.05 vermagic='5.14.0 SMP'
    elf.py library PATH SONAME nvmlInit_v2=9 cudnnGetVersion=6021

A library's functions return the given number, and do nothing else. Layout: System V ABI, AMD64 supplement; elf(5).
"""

import struct
import sys

BASE = 64 + 56 * 3  # the ELF header and three program headers


def padded(data, alignment=8):
    return data + b"\0" * (-len(data) % alignment)


def strings(names):
    """A string table, and where each name begins in it."""
    table, places = b"\0", {}
    for name in names:
        places[name] = len(table)
        table += name.encode() + b"\0"
    return table, places


def header(kind, program_headers, sections_at, sections, names_index):
    ident = b"\x7fELF" + bytes([2, 1, 1]) + b"\0" * 9
    return ident + struct.pack(
        "<HHIQQQIHHHHHH",
        *(kind, 62, 1, 0, 64 if program_headers else 0, sections_at, 0, 64, 56, program_headers, 64),
        *(sections, names_index),
    )


def module(fields):
    """A relocatable object with a .modinfo section: what modinfo and depmod read."""
    info = padded(b"".join(f"{key}={value}".encode() + b"\0" for key, value in fields))
    names, places = strings([".modinfo", ".shstrtab"])
    names = padded(names)
    sections = b"\0" * 64
    for name, kind, offset, size in (
        (".modinfo", 1, 64, len(info)),
        (".shstrtab", 3, 64 + len(info), len(names)),
    ):
        flags = 2 if name == ".modinfo" else 0  # allocated, as the kernel wants it
        sections += struct.pack("<IIQQQQIIQQ", places[name], kind, flags, 0, offset, size, 0, 0, 1, 0)
    return header(1, 0, 64 + len(info) + len(names), 3, 2) + info + names + sections


def library(soname, functions):
    """A shared object: one segment with code, symbols, their hash table and the dynamic section."""
    names, places = strings([soname] + [name for name, _ in functions])
    names = padded(names)
    code = b"".join(
        b"\xb8" + struct.pack("<I", value) + b"\xc3\x90\x90" for _, value in functions
    )  # mov eax, value; ret
    code_at = BASE
    symbols_at = code_at + len(code)
    symbols = b"\0" * 24
    for index, (name, _) in enumerate(functions):
        symbols += struct.pack("<IBBHQQ", places[name], 0x12, 0, 1, code_at + 8 * index, 6)
    count = len(functions) + 1
    # One bucket that begins a chain through all symbols.
    chain = [0] + [index + 1 if index + 1 < count else 0 for index in range(1, count)]
    table = padded(struct.pack(f"<III{count}I", 1, count, 1 if functions else 0, *chain))
    table_at = symbols_at + len(symbols)
    names_at = table_at + len(table)
    dynamic_at = names_at + len(names)
    dynamic = b"".join(
        struct.pack("<QQ", tag, value)
        for tag, value in (
            (14, places[soname]),  # SONAME
            (4, table_at),  # HASH
            (5, names_at),  # STRTAB
            (6, symbols_at),  # SYMTAB
            (10, len(names)),  # STRSZ
            (11, 24),  # SYMENT
            (0, 0),
        )
    )
    size = dynamic_at + len(dynamic)
    segments = (
        struct.pack("<IIQQQQQQ", 1, 7, 0, 0, 0, size, size, 4096)  # LOAD
        + struct.pack("<IIQQQQQQ", 2, 6, dynamic_at, dynamic_at, dynamic_at, len(dynamic), len(dynamic), 8)  # DYNAMIC
        + struct.pack("<IIQQQQQQ", 0x6474E551, 6, 0, 0, 0, 0, 0, 16)  # GNU_STACK, not executable
    )
    return header(3, 3, 0, 0, 0) + segments + code + symbols + table + names + dynamic


def main(arguments):
    kind, path, parameters = arguments[0], arguments[1], arguments[2:]
    if kind == "module":
        content = module([field.split("=", 1) for field in parameters])
    else:
        pairs = [field.split("=", 1) for field in parameters[1:]]
        content = library(parameters[0], [(name, int(value)) for name, value in pairs])
    with open(path, "wb") as handle:
        handle.write(content)


if __name__ == "__main__":
    main(sys.argv[1:])
