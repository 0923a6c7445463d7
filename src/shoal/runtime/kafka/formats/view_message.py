"""A view's schema as a Protobuf message, made while running; and messages as plain values and back.

Field numbers follow the policy's order of columns. They never change under a reader: another policy is another version
of the view, with a topic and a schema of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.core.errors import InputError, PolicyError
from shoal.policy.paths import Node
from shoal.runtime.kafka.formats.view_schema import Kind, ViewSchema, _titled

SCALARS: dict[Kind, str] = {"int": "TYPE_INT64", "float": "TYPE_DOUBLE", "bool": "TYPE_BOOL", "str": "TYPE_STRING"}


def message_of(schema: ViewSchema, package: str) -> Any:
    """The message class of a view."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    name = _titled(schema.role)
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.{name}.proto", package=package, syntax="proto3")
    _fill(file.message_type.add(), schema, schema.root, name, f".{package}.{name}")
    # a pool of its own: two policies may have messages of one name
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))


def message_from(path: Path, name: str) -> Any:
    """A message class from a compiled descriptor (``protoc --include_imports --descriptor_set_out``)."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    from google.protobuf.message import DecodeError

    try:
        found = descriptor_pb2.FileDescriptorSet.FromString(path.read_bytes())
        pool = descriptor_pool.DescriptorPool()
        for file in found.file:
            pool.Add(file)
        return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except OSError as error:
        raise InputError(f"cannot read the descriptor ({error.strerror})", where=str(path)) from None
    except (DecodeError, TypeError):
        raise InputError("this is no compiled Protobuf descriptor", where=str(path)) from None
    except KeyError:
        raise PolicyError(f"there is no message {name!r} in it", where=str(path)) from None


def plain(message: Any) -> dict[str, Any]:
    """A message as plain values; a field that is not set is null."""
    out: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.is_repeated:
            out[field.name] = [_value(item) for item in value]
        elif field.has_presence and not message.HasField(field.name):
            out[field.name] = None
        else:
            out[field.name] = _value(value)
    return out


def fill(message: Any, record: dict[str, Any]) -> Any:
    """Plain values into a message; null is left unset."""
    for field in message.DESCRIPTOR.fields:
        value = record.get(field.name)
        if value is None:
            continue
        if field.is_repeated:
            for item in value:
                if field.message_type is not None:
                    fill(getattr(message, field.name).add(), item or {})
                elif item is not None:
                    getattr(message, field.name).append(item)
        elif field.message_type is not None:
            part = getattr(message, field.name)
            # an object without a set field is there all the same
            part.SetInParent()
            fill(part, value)
        else:
            setattr(message, field.name, value)
    return message


def _value(value: Any) -> Any:
    return plain(value) if hasattr(value, "DESCRIPTOR") else value


def _fill(message: Any, schema: ViewSchema, node: Node, name: str, full: str) -> None:
    message.name = name
    for number, (field_name, below) in enumerate(node.fields.items(), 1):
        field = message.field.add(name=field_name, number=number)
        field.label = field.LABEL_OPTIONAL
        inner = below
        if below.element is not None and not schema.is_hidden(below):
            field.label, inner = field.LABEL_REPEATED, below.element
        kind = schema.kind(inner)
        if kind is None and inner.element is None:
            part = f"{_titled(field_name)}Part"
            field.type, field.type_name = field.TYPE_MESSAGE, f"{full}.{part}"
            _fill(message.nested_type.add(), schema, inner, part, f"{full}.{part}")
        elif kind in SCALARS:
            field.type = getattr(field, SCALARS[kind])
        else:
            raise PolicyError(
                "Protobuf needs to know the type of every column, and has no lists of lists",
                where=f"views.{schema.role}, {field_name}",
                hint="declare it: type: str",
            )
        if field.label == field.LABEL_OPTIONAL:
            # proto3 knows "not set" only inside a group of one
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field_name}")
