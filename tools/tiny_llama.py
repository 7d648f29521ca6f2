"""llama.cpp's own server over a model made on the spot: `python tiny_llama.py FILE KEY text|tools`.

The model has 64 dimensions, one layer and random weights. As `text` it babbles. As `tools` its
weights lean on three places, so that it begins a call, closes it soon and then stops; what stands
between is what the server's grammar for the offered tools lets through. The first line printed is
the address; it serves until its standard input is closed.

Runs in an environment of its own that `interop.py` makes: nothing of smista is there.
"""

import sys
from typing import Any

import gguf
import numpy
import xllamacpp

WIDTH, INNER, HEADS, WINDOW = 64, 128, 4, 8192
OPEN, CLOSE = "<tool_call>", "</tool_call>"
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), OPEN, CLOSE]
# As llama.cpp numbers them: unknown, control, control, bytes, defined by the user.
KINDS = [2, 3, 3, *[6] * 256, 4, 4]
LINE_END, QUOTE = 3 + ord("\n"), 3 + ord('"')
END, BEGIN_CALL, END_CALL = TOKENS.index("</s>"), TOKENS.index(OPEN), TOKENS.index(CLOSE)
TEMPLATE = """\
{%- if tools %}{{- 'Tools:\n' }}
{%- for tool in tools %}{{- tool | tojson }}{{- '\n' }}{%- endfor %}{%- endif %}
{%- for message in messages %}{{- message.role + ': ' }}
{%- if message.content is string %}{{- message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '<tool_call>{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{- '}</tool_call>' }}
{%- endfor %}{{- '\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- 'assistant:\n' }}{%- endif %}"""


def make_model(path: str, *, calls: bool) -> None:
    """Write a random model to *path*; one that *calls* leans towards calls of tools."""
    random = numpy.random.default_rng(7)

    def draw(*shape: int, spread: float = 0.05) -> Any:
        return random.normal(0, spread, shape).astype(numpy.float32)

    known, said = draw(len(TOKENS), WIDTH, spread=0.3), draw(len(TOKENS), WIDTH, spread=0.3)
    if calls:
        lean(known, said)
    writer = gguf.GGUFWriter(path, "llama")
    describe(writer)
    one = numpy.ones(WIDTH, numpy.float32)
    tensors = {"token_embd": known, "output_norm": one, "output": said}
    tensors |= {f"blk.0.{name}_norm": one for name in ("attn", "ffn")}
    tensors |= {f"blk.0.attn_{name}": draw(WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
    tensors |= {f"blk.0.ffn_{name}": draw(INNER, WIDTH) for name in ("gate", "up")}
    tensors |= {"blk.0.ffn_down": draw(WIDTH, INNER)}
    for name, values in tensors.items():
        writer.add_tensor(f"{name}.weight", values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def lean(known: Any, said: Any) -> None:
    """Let a call begin after a line's end, and the answer end after a call; quotes come soon.

    Dimension 0 is that of every token, 1 that of a line's end, 2 that of a closed call.
    """
    known[:, :3], said[:, :3] = 0, 0
    known[:, 0], known[LINE_END, 1], known[END_CALL, 2] = 3, 3, 3
    said[QUOTE, 0], said[END_CALL, 0] = 10, 8
    said[BEGIN_CALL, 1], said[END, 2] = 20, 20


def describe(writer: gguf.GGUFWriter) -> None:
    writer.add_context_length(WINDOW)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(1)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.0] * len(TOKENS))
    writer.add_token_types(KINDS)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(END)
    writer.add_unk_token_id(0)
    writer.add_chat_template(TEMPLATE)


def serve(path: str, key: str) -> Any:
    settings = xllamacpp.CommonParams()
    settings.model.path = path
    settings.hostnames, settings.port, settings.api_keys = ["127.0.0.1"], 0, [key]
    settings.n_ctx, settings.n_predict = WINDOW, 1024
    settings.warmup = settings.fit_params = False
    settings.sampling.seed = 3
    return xllamacpp.Server(settings)


if __name__ == "__main__":
    file, secret, what = sys.argv[1:]
    make_model(file, calls=what == "tools")
    server = serve(file, secret)
    print(server.listening_address, flush=True)
    sys.stdin.read()
