"""Writes the model as a GGUF file, version 3, with weights of F32. Source: the GGUF specification (ggml-org)."""
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
    tensors = {f"{name.removesuffix('.weight')}.weight": weight.detach().numpy().astype("<f4")
               for name, weight in model.named_parameters()}
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
