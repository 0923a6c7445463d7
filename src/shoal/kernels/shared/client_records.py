"""Records in the memory of Kafka's C client as columns, and columns as records of it.

Addresses are whole numbers, those of functions too: so compiled code can be kept from one run to the next. A message
(``rd_kafka_message_t``) is eight words and one of the client's own, and an argument (``rd_kafka_vu_t``) of the function
that takes a record is nine. Both are part of the library's published interface, which does not change.
"""

import numpy as np

from shoal.kernels.compile import kernel
from shoal.kernels.shared.address import call_with_one, call_with_three, call_with_two, copy_bytes, struct_at

WORDS = 9  # of a message, and of an argument
ERROR, PARTITION, VALUE, LENGTH, KEY, KEY_LENGTH, OFFSET = 0, 2, 3, 4, 5, 6, 7  # words of a message
NONE = -1  # the length of what is not there
FETCHED = 2  # the kind of an event that carries a message
TOPIC, HOW, TAKE_PARTITION, TAKE_TIME, TAKE_VALUE, TAKE_KEY = range(6)  # where arguments stand; the last may lack
NEWLINE = 10


@kernel
def polled(queue, poll, kind, message_of, event, events, messages):
    """Events that a queue has now, from one on that was taken already, and their messages (0: it carries none).

    Answers how many. Events call nothing of the client's Python: only its own functions may be called back. O(events).
    """
    count = 0
    while event != 0:
        events[count] = event
        fetched = call_with_one(kind, event) & 0xFFFFFFFF == FETCHED
        messages[count] = call_with_one(message_of, event) if fetched else 0
        count += 1
        event = call_with_two(poll, queue, 0) if count < events.size else 0
    return count


@kernel
def measured(messages, errors, partitions, offsets, lengths, key_lengths):
    """What messages say of themselves, and the bytes of their values with a line end each, and of their keys.

    A message with an error is none: its length is that of a value that is not there. O(messages).
    """
    room, key_room = 0, 0
    for i in range(messages.size):
        if messages[i] == 0:
            errors[i], partitions[i], offsets[i], lengths[i], key_lengths[i] = 1, 0, 0, NONE, NONE
            continue
        message = struct_at(messages[i], WORDS)
        errors[i] = np.int32(message[ERROR] & 0xFFFFFFFF)
        partitions[i] = np.int32(message[PARTITION] & 0xFFFFFFFF)
        offsets[i] = message[OFFSET]
        lengths[i] = message[LENGTH] if message[VALUE] != 0 and errors[i] == 0 else NONE
        key_lengths[i] = message[KEY_LENGTH] if message[KEY] != 0 and errors[i] == 0 else NONE
        room += lengths[i] + 1
        key_room += max(key_lengths[i], 0)
    return room, key_room


@kernel
def taken(messages, events, lengths, key_lengths, when, free, values, keys, times):
    """Copy values and keys, and give the events back; ``when`` tells the time of a message, ``free`` frees an event.

    O(bytes).
    """
    at, key_at = 0, 0
    kind = np.zeros(1, np.int64)  # of a time, which nobody asks for
    for i in range(messages.size):
        if messages[i] == 0:
            times[i] = 0
            call_with_one(free, events[i])
            continue
        message = struct_at(messages[i], WORDS)
        if lengths[i] >= 0:
            copy_bytes(values.ctypes.data + at, message[VALUE], lengths[i])
            at += lengths[i] + 1
            values[at - 1] = NEWLINE
        if keys.size > 0 and key_lengths[i] > 0:
            copy_bytes(keys.ctypes.data + key_at, message[KEY], key_lengths[i])
            key_at += key_lengths[i]
        times[i] = call_with_two(when, messages[i], kind.ctypes.data)
        call_with_one(free, events[i])


@kernel
def given(produce, client, arguments, base, starts, lengths, partitions, times, key_base, key_starts, key_lengths, at):
    """Hand records over from ``at`` on; the place of the first that was refused, and the error it was refused with.

    Values lie behind the address ``base``, keys behind ``key_base`` if there are any. ``arguments`` name the topic and
    how memory is treated (copied), and are filled in for each record. O(bytes).
    """
    place = arguments.ctypes.data
    for i in range(at, starts.size):
        there = lengths[i] >= 0
        arguments[TAKE_VALUE, 1] = base + starts[i] if there else 0
        arguments[TAKE_VALUE, 2] = lengths[i] if there else 0
        if key_lengths.size > 0:
            there = key_lengths[i] >= 0
            arguments[TAKE_KEY, 1] = key_base + key_starts[i] if there else 0
            arguments[TAKE_KEY, 2] = key_lengths[i] if there else 0
        arguments[TAKE_PARTITION, 1] = partitions[i]
        arguments[TAKE_TIME, 1] = times[i]
        error = call_with_three(produce, client, place, arguments.shape[0])
        if error != 0:
            return i, error
    return starts.size, 0
