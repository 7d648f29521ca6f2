"""What the model of these tests answers, and the files of the house they play in."""

TICKS = ", ".join(f'{{ text = "tick{n} " }}, {{ pause_ms = 5 }}' for n in range(2000))
MANY_LINES = "".join(f"row {n}\\n" for n in range(1, 101))
ANSWER = (
    r"# Heading\n\nIt is **bold**, `code` and <b>tags</b>.\n\n"
    r"```python\nreturn 1\n```\n\n- one\n- two\n"
)
COMMAND = "echo $$ > pid; echo ready-$((1+1)); sleep 60"
HOSTILE = r"A\u001b]0;PWNED\u0007B\u001b[35mC\u202eD &#x202E; [link](http://there.example/x)\n"

SCRIPT = f"""
[[rules]]
name = "tool results: refused"
when = {{ results = true, failed = true }}
say = [{{ text = "Then not: {{result}}" }}]

[[rules]]
name = "tool results"
when = {{ results = true }}
say = [{{ text = "Done: {{result}}" }}]

[[rules]]
name = "think"
when = {{ user = 'think' }}
say = [{{ reasoning = "first this and then that" }}, {{ text = "{ANSWER}" }}]

[[rules]]
name = "hostile"
when = {{ user = 'hostile' }}
say = [{{ text = "{HOSTILE}" }}]

[[rules]]
name = "ticks"
when = {{ user = 'tick' }}
say = [{{ text = "begun\\n" }}, {TICKS}]

[[rules]]
name = "hold"
when = {{ user = 'hold on' }}
say = [{{ text = "it begins\\n" }}, {{ hold = true }}]

[[rules]]
name = "back off"
when = {{ user = 'back off' }}
say = [{{ error = {{ status = 429, message = "later", retry_after = "15" }} }}]

[[rules]]
name = "code"
when = {{ user = 'write code' }}
say = [
    {{ text = "```python\\nfirst = 1\\n" }},
    {{ pause_ms = 1000 }},
    {{ text = "second = 2\\n```\\n\\nAfter it, **bold**.\\n" }},
]

[[rules]]
name = "fix"
when = {{ user = 'fix the typo' }}
say = [
    {{ text = "I will mend it. " }},
    {{ tool = "edit_file", arguments = {{ path = "hello.txt", old = "Helo", new = "Hello" }} }},
]

[[rules]]
name = "many lines"
when = {{ user = 'write much' }}
say = [{{ tool = "write_file", arguments = {{ path = "much.txt", content = "{MANY_LINES}" }} }}]

[[rules]]
name = "sleep"
when = {{ user = 'sleep long' }}
say = [{{ tool = "shell", arguments = {{ command = "{COMMAND}" }} }}]

[[rules]]
name = "plan"
when = {{ user = 'make a plan' }}
say = [{{ text = "1. look\\n2. leap" }}]

[[rules]]
name = "echo"
say = [{{ text = "You wrote: {{user}}" }}]
"""

ROUTER = """
[router]
port = {port}

[router.rate_limit]
enabled = false

[router.providers."openai-compat:demo"]
base_url = "{model}"
local = true

[[router.providers."openai-compat:demo".models]]
name = "demo"
display_name = "Demo One"
max_context_tokens = 2000000
input_cost_per_million_tokens = "1"
output_cost_per_million_tokens = "2"

[[router.providers."openai-compat:demo".models]]
name = "other"
display_name = "Demo Two"
max_context_tokens = 2000000

[router.providers."openai-compat:far"]
base_url = "{model}"
local = false

[[router.providers."openai-compat:far".models]]
name = "far"
max_context_tokens = 100000
input_cost_per_million_tokens = "1"
output_cost_per_million_tokens = "2"
"""

POLICY = """
[providers."openai-compat:demo"]

[providers."openai-compat:far"]

[[classification.rules]]
intent = "edit"
keywords = ["fix"]

[[routing.rules]]
name = "edits stay here"
intent = "edit"
model = "openai-compat:demo/demo"

[routing.default]
model = "openai-compat:demo/demo"

[tools.permissions]
file_write = "ask"
shell = "ask"

[local_preferences]
encrypt_sessions = false
"""
