"""Writes the model as a GGUF file, version 3, with weights of F32, and reads such a file again.

Source: the GGUF specification (ggml-org).
"""
import struct

import numpy

import vocabulary as words

UINT32, FLOAT32, BOOL, STRING, ARRAY, INT32 = 4, 6, 7, 8, 9, 5
ALIGNMENT = 32
NORMAL, CONTROL = 1, 3

TEMPLATE = ("{{ bos_token }}{% for message in messages %}{% if message.role == 'system' %}<|persona|>"
            "{% elif message.role == 'user' %}<|visitor|>{% else %}<|reply|>{% endif %}{{ message.content }}<|end|>"
            "{% endfor %}{% if add_generation_prompt %}<|reply|>{% endif %}")


def string(text):
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, data):
    return string(key) + struct.pack("<I", kind) + data


def number(key, value):
    if isinstance(value, bool):
        return entry(key, BOOL, struct.pack("<?", value))
    if isinstance(value, float):
        return entry(key, FLOAT32, struct.pack("<f", value))
    return entry(key, UINT32, struct.pack("<I", value))


def text_entry(key, text):
    return entry(key, STRING, string(text))


def list_entry(key, kind, items):
    return entry(key, ARRAY, struct.pack("<IQ", kind, len(items)) + b"".join(items))


def metadata(shape, vocabulary):
    kinds = [CONTROL if at < len(words.SPECIAL) else NORMAL for at in range(len(vocabulary.tokens))]
    llama = {
        "context_length": shape.context, "embedding_length": shape.width, "block_count": shape.layers,
        "feed_forward_length": shape.feed_forward, "attention.head_count": shape.heads,
        "attention.head_count_kv": shape.kv_heads, "attention.key_length": shape.head_dims,
        "attention.value_length": shape.head_dims, "rope.dimension_count": shape.head_dims,
        "rope.freq_base": shape.rope_base, "attention.layer_norm_rms_epsilon": shape.epsilon,
        "vocab_size": len(vocabulary.tokens),
    }
    tokenizer = {"bos_token_id": words.BEGIN, "eos_token_id": words.END, "padding_token_id": words.PAD,
                 "add_bos_token": True, "add_eos_token": False}
    return [
        text_entry("general.architecture", "llama"), text_entry("general.name", "Village"),
        text_entry("general.license", "mit"), number("general.alignment", ALIGNMENT),
        *(number(f"llama.{key}", value) for key, value in llama.items()),
        text_entry("tokenizer.ggml.model", "gpt2"), text_entry("tokenizer.ggml.pre", "gpt-2"),
        list_entry("tokenizer.ggml.tokens", STRING, [string(token) for token in vocabulary.tokens]),
        list_entry("tokenizer.ggml.token_type", INT32, [struct.pack("<i", kind) for kind in kinds]),
        list_entry("tokenizer.ggml.merges", STRING, [string(" ".join(pair)) for pair in vocabulary.merges]),
        *(number(f"tokenizer.ggml.{key}", value) for key, value in tokenizer.items()),
        text_entry("tokenizer.chat_template", TEMPLATE),
    ]


def padded(data):
    return data + b"\0" * (-len(data) % ALIGNMENT)


def write(path, model, vocabulary):
    tensors = {name: weight.detach().numpy().astype("<f4") for name, weight in model.named_parameters()}
    entries = metadata(model.shape, vocabulary)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries)
    offset = 0
    blobs = []
    for name, weight in tensors.items():
        head += string(name) + struct.pack("<I", weight.ndim) + struct.pack(f"<{weight.ndim}Q", *reversed(weight.shape))
        head += struct.pack("<IQ", 0, offset)
        blobs.append(padded(numpy.ascontiguousarray(weight).tobytes()))
        offset += len(blobs[-1])
    with open(path, "wb") as file:
        file.write(padded(head))
        file.writelines(blobs)


class Reader:
    """Takes values off the beginning of a file's bytes. The file is one of our own: nothing of it is doubted."""

    def __init__(self, data):
        self.data = data
        self.at = 0

    def take(self, form):
        found = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return found if len(found) > 1 else found[0]

    def text(self):
        size = self.take("Q")
        self.at += size
        return self.data[self.at - size:self.at].decode()

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            item, count = self.take("IQ")
            return [self.value(item) for _ in range(count)]
        return self.take({UINT32: "I", FLOAT32: "f", BOOL: "?", INT32: "i"}[kind])


def read(path):
    """The model and the vocabulary of a file that write() wrote. The model has the shape that network.Shape says."""
    import torch
    from network import Shape, Village
    with open(path, "rb") as file:
        reader = Reader(file.read())
    _, _, tensor_count, entry_count = reader.take("4sIQQ")
    entries = {}
    for _ in range(entry_count):
        key = reader.text()
        entries[key] = reader.value(reader.take("I"))
    model = Village(Shape())
    weights = dict(model.named_parameters())
    places = []
    for _ in range(tensor_count):
        name = reader.text()
        dims = [reader.take("Q") for _ in range(reader.take("I"))]
        places.append((name, dims[::-1], reader.take("IQ")[1]))
    start = reader.at + -reader.at % ALIGNMENT
    with torch.no_grad():
        for name, dims, offset in places:
            count = int(numpy.prod(dims))
            values = numpy.frombuffer(reader.data, "<f4", count, start + offset).reshape(dims)
            weights[name].copy_(torch.from_numpy(values.astype(numpy.float32)))
    return model, words.Vocabulary([merge.split(" ") for merge in entries["tokenizer.ggml.merges"]])
