# SPDX-License-Identifier: BSD-3-Clause
"""What write_vti() has written, read again: each byte of the files, by Python's own parser of XML; with --vtk also the
fields, by VTK's reader, which is that of ParaView. Exits with 77 if there is no VTK.

Usage: check_vti.py [--vtk] LAUNCHER PROGRAM      (the launcher's words are joined by |)
"""
import os
import re
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

PROGRAMS = 12
SIZES = {"Int8": 1, "Int16": 2, "Int32": 4, "Int64": 8, "UInt8": 1, "UInt16": 2, "UInt32": 4, "UInt64": 8, "Float32": 4,
         "Float64": 8}


def expected_of(path):
    """(cells along each axis or 0, origin, spacing, {name: (type, components, bytes of all cells)})"""
    with open(path, encoding="ascii") as f:
        lines = f.read().splitlines()
    axes = [line.split() for line in lines[:3]]
    fields = {}
    for line in lines[3:]:
        name, kind, components, *data = line.split(" ")
        fields[name] = kind, int(components), bytes.fromhex("".join(data))
    return [int(a[0]) for a in axes], [float(a[1]) for a in axes], [float(a[2]) for a in axes], fields


def numbers(text, kind):
    return [kind(word) for word in text.split()]


def only(element, tag, attributes):
    """Its one child of a tag; the element has exactly these attributes."""
    assert set(element.attrib) == set(attributes), element.attrib
    found = element.findall(tag)
    assert len(found) == 1, (element.tag, tag, len(found))
    return found[0]


def root_of(text, kind):
    root = ElementTree.fromstring(text)
    assert root.tag == "VTKFile" and root.attrib == {
        "type": kind, "version": "1.0", "byte_order": sys.byteorder.capitalize() + "Endian", "header_type": "UInt64"}
    return root


def read_piece(path, extent, origin, spacing, arrays):
    """Of each field the bytes of this piece. `arrays`: the list's PDataArrays."""
    with open(path, "rb") as f:
        content = f.read()
    begin = re.search(rb'<AppendedData encoding="raw">\s*_', content).end()
    image = only(root_of(content[:begin] + content[content.rindex(b"</AppendedData>"):], "ImageData"), "ImageData",
                 ["type", "version", "byte_order", "header_type"])
    piece = only(image, "Piece", ["WholeExtent", "Origin", "Spacing"])
    cells = only(piece, "CellData", ["Extent"])
    assert numbers(image.get("WholeExtent"), int) == numbers(piece.get("Extent"), int) == extent, (path, extent)
    assert numbers(image.get("Origin"), float) == origin and numbers(image.get("Spacing"), float) == spacing
    assert len(cells) == len(arrays)
    data, at = {}, begin
    for array, listed in zip(cells, arrays):
        assert array.tag == "DataArray" and array.attrib == {**listed.attrib, "format": "appended", "offset": str(at - begin)}
        length = int.from_bytes(content[at:at + 8], sys.byteorder)
        data[array.get("Name")] = content[at + 8:at + 8 + length]
        at += 8 + length
    assert re.fullmatch(rb"\s*</AppendedData>\s*</VTKFile>\s*", content[at:]), (path, at)
    return data


def check_files(folder, name):
    path = os.path.join(folder, name)
    size, origin, spacing, fields = expected_of(path + ".expected")
    with open(path, "rb") as f:
        image = only(root_of(f.read(), "PImageData"), "PImageData", ["type", "version", "byte_order", "header_type"])
    listed = only(image, "PCellData", ["WholeExtent", "GhostLevel", "Origin", "Spacing"])
    assert numbers(image.get("WholeExtent"), int) == [0, size[0], 0, size[1], 0, size[2]] and image.get("GhostLevel") == "0"
    assert numbers(image.get("Origin"), float) == origin and numbers(image.get("Spacing"), float) == spacing
    assert [(a.get("Name"), a.get("type"), int(a.get("NumberOfComponents"))) for a in listed] == [
        (field, kind, components) for field, (kind, components, _) in fields.items()]
    n = [max(cells, 1) for cells in size]
    whole = {field: bytearray(len(data)) for field, (_, _, data) in fields.items()}
    seen = bytearray(n[0] * n[1] * n[2])
    for piece in image.findall("Piece"):
        assert set(piece.attrib) == {"Extent", "Source"}
        extent = numbers(piece.get("Extent"), int)
        data = read_piece(os.path.join(folder, piece.get("Source")), extent, origin, spacing, list(listed))
        x, x_end, y, y_end, z, z_end = (e + (i % 2 and size[i // 2] == 0) for i, e in enumerate(extent))
        assert x < x_end and y < y_end and z < z_end, extent
        for row, (k, j) in enumerate((k, j) for k in range(z, z_end) for j in range(y, y_end)):
            first = (k * n[1] + j) * n[0] + x
            for cell in range(first, first + x_end - x):
                seen[cell] += 1
            for field, (kind, components, _) in fields.items():
                cell = SIZES[kind] * components
                length = (x_end - x) * cell
                assert len(data[field]) == length * (y_end - y) * (z_end - z)
                whole[field][first * cell:first * cell + length] = data[field][row * length:(row + 1) * length]
    assert seen == b"\1" * len(seen), "the pieces do not cover the domain once"
    for field, (_, _, data) in fields.items():
        assert whole[field] == data, (name, field)


def check_with_vtk(folder, name):
    from vtkmodules.vtkIOXML import vtkXMLPImageDataReader

    path = os.path.join(folder, name)
    size, origin, spacing, fields = expected_of(path + ".expected")
    reader = vtkXMLPImageDataReader()
    assert reader.CanReadFile(path)
    failed = []
    reader.AddObserver("ErrorEvent", lambda *what: failed.append(what))
    reader.SetFileName(path)
    reader.Update()
    image = reader.GetOutput()
    assert not failed and image.GetExtent() == (0, size[0], 0, size[1], 0, size[2]), (failed, image.GetExtent())
    assert list(image.GetOrigin()) == origin and list(image.GetSpacing()) == spacing
    cells = image.GetCellData()
    assert cells.GetNumberOfArrays() == len(fields) and image.GetPointData().GetNumberOfArrays() == 0
    for field, (kind, components, data) in fields.items():
        array = cells.GetArray(field)
        assert array.GetNumberOfComponents() == components and array.GetDataTypeSize() == SIZES[kind]
        assert kind.startswith("Float") == (array.GetDataTypeAsString() in ("float", "double"))
        assert bytes(memoryview(array).cast("B")) == data, (name, field)


def main():
    words = sys.argv[1:]
    with_vtk = words[0] == "--vtk"
    launcher, program = words[with_vtk].split("|"), words[with_vtk + 1]
    if with_vtk:
        try:
            import vtkmodules.vtkIOXML  # noqa: F401
        except ImportError as e:
            print("SKIP:", e)
            sys.exit(77)
    with tempfile.TemporaryDirectory(dir=os.getcwd()) as folder:
        subprocess.run([*launcher, program, folder, str(PROGRAMS)], check=True)
        for seed in range(1, PROGRAMS + 1):
            check_files(folder, f"{seed}.pvti")
            if with_vtk:
                check_with_vtk(folder, f"{seed}.pvti")


main()
