"""Single settings of Hadoop's configuration files: properties of *.xml, keys of container-executor.cfg. Python 2.7 and 3, standard library only.

Everything else in a file keeps its bytes: comments, order, white space. Pure functions, from bytes to bytes. How Hadoop reads its files:
org.apache.hadoop.conf.Configuration.Parser and, for container-executor.cfg, configuration.c of hadoop-yarn-server-nodemanager (both 3.3.6).
"""

import re
from xml.parsers import expat
from xml.sax import saxutils

LARGEST = 8 * 1024 * 1024
EMPTY = b'<?xml version="1.0"?>\n<configuration>\n</configuration>\n'
SPACES = b" \t"
# Settings whose value is a list of words with commas between them: a word is added, and others stay.
LISTS = ("yarn.resource-types", "yarn.nodemanager.resource-plugins")
# Values that Hadoop's own files have, so that they are nobody's choice (capacity-scheduler.xml and yarn-default.xml of 2.10.2 and 3.3.6).
DEFAULTS = {
    "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DefaultResourceCalculator",
    "yarn.nodemanager.health-checker.interval-ms": "600000",
}


class Unusable(ValueError):
    """A file that cannot be read as Hadoop reads it, or not be changed in one place; the text continues "must"."""


class Property(object):
    """One <property>: its name, value, and where its bytes and those of its <value> are."""

    def __init__(self, start, attributes):
        self.start, self.end, self.span = start, start, None
        self.name, self.value = attributes.get("name"), attributes.get("value")
        self.final = attributes.get("final") == "true"
        self.written_in_attributes = bool(attributes)


class Reader(object):
    """Collects the properties of a configuration, and where it ends. includes: whether it may include files, whose settings are not seen."""

    def __init__(self, data, includes=False):
        self.data, self.path, self.text, self.found, self.end, self.includes = data, [], "", [], None, includes
        self.parser = expat.ParserCreate()
        self.parser.StartElementHandler = self.start_element
        self.parser.EndElementHandler = self.end_element
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype

    def read(self):
        if len(self.data) > LARGEST or b"\0" in self.data:
            raise Unusable("be text of at most 8 MiB in an encoding that has ASCII")
        try:
            self.parser.Parse(self.data, True)
        except Unusable:
            raise
        except (expat.ExpatError, ValueError, LookupError) as error:  # of an encoding without ASCII, as well
            raise Unusable("be XML, but is not: %s" % error)
        return self

    def doctype(self, *_):
        raise Unusable("have no document type, which may define entities")

    def start_element(self, tag, attributes):
        place = self.parser.CurrentByteIndex
        if not self.path and tag != "configuration":
            raise Unusable("be a <configuration>, but is a <%s>" % tag)
        if tag.rpartition(":")[2] == "include" and not self.includes:
            raise Unusable("include no other file, because settings there are not seen")
        self.path.append(tag)
        if self.path == ["configuration", "property"]:
            self.found.append(Property(place, attributes))
        elif self.path == ["configuration", "property", "value"]:
            self.found[-1].span = (place, place)
        self.text = ""

    def characters(self, text):
        self.text += text

    def end_element(self, tag):
        place, path = self.parser.CurrentByteIndex, tuple(self.path)
        self.path.pop()
        closed = place
        if self.data[place : place + 2] == b"</":  # not of <value/>, whose end is here
            closed = self.data.index(b">", place) + 1
        if path == ("configuration",):
            self.end = place if closed > place else None  # of <configuration/>: it has no place for a property
        elif path == ("configuration", "property"):
            self.found[-1].end = closed
        elif len(path) == 3 and path[1] == "property":
            self.close(tag, closed)
        self.text = ""

    def close(self, tag, closed):
        prop = self.found[-1]
        if tag == "name":
            prop.name = self.text.strip()
        elif tag == "value":
            prop.value, prop.span = self.text, (prop.span[0], closed)
        elif tag == "final":
            prop.final = self.text.strip() == "true"


def effective(all_properties):
    """Name -> the property that counts: the last one with a value, unless an earlier one is final."""
    properties = {}
    for prop in all_properties:
        if prop.name and prop.value is not None and not (prop.name in properties and properties[prop.name].final):
            properties[prop.name] = prop
    return properties


def xml_values(data, includes=False):
    return dict((name, prop.value.strip()) for name, prop in effective(Reader(data, includes).read().found).items())


def xml_raw(data, name):
    """The <value> element of a property as it is written; None if it has none."""
    prop = effective(Reader(data).read().found).get(name)
    return None if prop is None or prop.span is None else data[prop.span[0] : prop.span[1]].decode("utf-8")


def element(value):
    return "<value>%s</value>" % saxutils.escape(value)


def xml_with(data, name, raw):
    """The file with this <value> element for the property, which is added at the end; None removes the property."""
    reader = Reader(data).read()
    prop = effective(reader.found).get(name)
    if prop is None and raw is None:
        return data
    if prop is None and reader.end is None:
        raise Unusable("have <configuration> and </configuration>, but has <configuration/>")
    if prop is None:
        return inserted(data, reader.end, name, raw)
    if raw is None:
        start, end = whole_line(data, prop.start, prop.end)
        return data[:start] + data[end:]
    if prop.span is None or prop.written_in_attributes:
        raise Unusable("have %s in elements of its own, not in attributes" % name)
    return data[: prop.span[0]] + raw.encode("utf-8") + data[prop.span[1] :]


def inserted(data, place, name, raw):
    text = ("<property><name>%s</name>%s</property>" % (saxutils.escape(name), raw)).encode("utf-8")
    line = data.rfind(b"\n", 0, place) + 1
    if data[line:place].strip(SPACES) or not line:
        return data[:place] + text + data[place:]
    return data[:line] + b"  " + text + newline(data) + data[line:]


def newline(data):
    return b"\r\n" if b"\r\n" in data else b"\n"


def whole_line(data, start, end):
    """The place, with its line if nothing else is in it."""
    line, line_end = data.rfind(b"\n", 0, start) + 1, data.find(b"\n", end) + 1
    alone = line_end and not data[line:start].strip(SPACES) and not data[end:line_end].strip()
    return (line, line_end) if alone else (start, end)


# container-executor.cfg: KEY=VALUE lines, those after [SECTION] belong to it, and the first one of a key counts. # begins a comment anywhere, and a key
# whose value is only that is not set. A key here is "KEY" or "[SECTION] KEY".


def cfg_lines(data):
    """(key, value, number of the line) of every setting, and the number of the last line of every section."""
    settings, section, last = [], "", {"": 0}
    for number, line in enumerate(data.decode("utf-8").splitlines(True), 1):
        text = line.partition("#")[0].strip()
        header = re.match(r"^\[([^\]]+)\]$", text)
        if header:
            section = "[%s] " % header.group(1).strip()
        elif text.partition("=")[2]:
            key, _, value = text.partition("=")
            settings.append((section + key.strip(), value.strip(), number))
        if line.strip():
            last[section] = number
    return settings, last


def cfg_values(data):
    return dict((key, value) for key, value, _ in reversed(cfg_lines(data)[0]))


def cfg_raw(data, key):
    """The line of a key without its end; None if there is none."""
    numbers = [number for name, _, number in cfg_lines(data)[0] if name == key]
    return data.decode("utf-8").splitlines()[numbers[0] - 1] if numbers else None


def cfg_with(data, key, raw):
    """The file with this line for the key; None removes the line, and a section of which nothing is left."""
    settings, last = cfg_lines(data)
    lines, end = data.decode("utf-8").splitlines(True), newline(data).decode("ascii")
    section, _, _ = key.rpartition("] ")
    section = section + "] " if section else ""
    numbers = [number for name, _, number in settings if name == key]
    if numbers and raw is not None:
        lines[numbers[0] - 1] = raw + re.search(r"\r?\n?$", lines[numbers[0] - 1]).group(0)
    elif numbers:
        del lines[numbers[0] - 1]
        if section and last[section] == numbers[0] and lines[numbers[0] - 2].strip() == section.strip():
            del lines[numbers[0] - 2]
    elif raw is not None:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += end
        if section not in last:
            lines.append(section.strip() + end)
            last[section] = len(lines)
        lines.insert(last[section], raw + end)
    return "".join(lines).encode("utf-8")


def assignment(key, value):
    return "%s=%s" % (key.rpartition("] ")[2], value)


def words(value):
    return [word.strip() for word in (value or "").split(",") if word.strip()]
