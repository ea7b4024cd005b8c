"""No credential survives, whatever it stands in; words of language models do. Long texts take no longer than linear."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compatcheck.files.secrets import HIDDEN, masked, without_homes, without_secrets

HEALTHY = Path(__file__).parents[1] / "symptoms" / "logs" / "healthy"
SECRET = "Zq3vX9SECRETk7LmW2"
PLACES = (
    "https://user:{}@host/simple",
    "git+https://{}@github.com/a/b.git@v1",
    "https://host/x?token={}",
    "https://host/x?a=1&amp;X-Amz-Signature={}&amp;b=2",
    'login(token="{}")',
    "wandb.login(key='{}')",
    "os.environ['HF_TOKEN'] = '{}'",
    'os.environ.setdefault("WANDB_API_KEY", "{}")',
    "export OPENAI_API_KEY='{}'",
    "ENV HF_TOKEN {}",
    "--hub_token {} --bf16 True",
    "--hub-token={}",
    "hub_token: {}",
    '"hub_token": "{}"',
    '{{\\"hub_token\\": \\"{}\\"}}',
    "token=&quot;{}&quot;",
    "Authorization: Bearer {}",
    "-H 'Authorization: token {}'",
    "aws_secret_access_key = {}",
    "password={}",
    "https://user:p@{}@host/simple",
    "https://user:p/{}@host/simple",
    "https:\\/\\/user:{}@host",
    "HTTPS_PROXY=user:{}@proxy:3128",
    "PGPASSWORD={}",
    "MYSQL_PWD={}",
    "DB_PASS={}",
    "NPM_TOKEN={}",
    "VAULT_TOKEN={}",
    "SENTRY_TOKEN={}",
    "GH_PAT={}",
    "--token {}",
    "--token={}",
    '"token": "{}"',
    "clientSecret: {}",
    "secretAccessKey: {}",
    "X-Amz-Security-Token: {}",
    "password: 'a b,{}'",
    "password: '$a-{}'",
    "password: '12-{}'",
    'password = """{}"""',
    "hub_token: |\n  {}",
    "hub_token: !!str {}",
    "- name: HF_TOKEN\n  value: {}",
    '{{"name": "HF_TOKEN", "value": "{}"}}',
    "| hub_token | {} |",
    "Authorization: Digest {}",
    "-----BEGIN RSA PRIVATE KEY-----\n{}",
    "hub_tokens: [{}, '{}']",
    "api_keys:\n  - {}\n  - '{}'\nname: x",
    '"api_keys": [\n  "{}",\n  "{}"\n]',
    "api:\n  key: {}",
    "api:\n    url: x\n    key: '{}'\nb: 1",
    'api: {{"url": "x", "key": "{}"}}',
    "curl -u user:{} https://host",
    "curl -fsSL --user 'user:{}' https://host",
    "curl -b 'a={}' https://host",
    "Cookie: session={}; b={}",
    '"Set-Cookie": "sid={}; Path=/"',
    "-H 'Cookie: a={}'",
    "wandb login {}",
    "wandb login --relogin --host=https://wandb.host {}",
    "huggingface-cli login --token {}",
    "hf auth login --token={} --add-to-git-credential",
    "docker login -u me -p {} registry",
    "echo {} | docker login --password-stdin",
    "sshpass -p {} ssh host",
    "aws configure set aws_secret_access_key {}",
    "machine hf.co login me password {}",
    "auth=('user', '{}')",
    "https://discord.com/api/webhooks/123/{}",
    "pass: {}",
    'kaggle: {{"username": "a", "key": "{}"}}',
    "Bearer: {}",
    "signing_key: {}",
    "export HF_TOKEN=${{X:-{}}}",
    'HF_TOKEN="${{X:-{}}}"',
    "password: ${{DB_PASSWORD:-{}}}",
    "password: ${{oc.env:A,{}}}",
    "x: ${{oc.env:DB_PASSWORD,{}}}",
    "HF_TOKEN=$(echo {})",
    "HF_TOKEN=$(echo '{}' | base64 -d)",
    "HF_TOKEN=$(printf %s {})",
    "os.environ.get('HF_TOKEN') or '{}'",
    "密码: {}",
    "登录密码是：{}",
    "口令：{}",
    "令牌：{}",
    "访问密钥为 {}",
    "HF_TOKEN：{}",
    "password：{}",
    "mysql -u root -p{} db",
    "mysqldump -h host -p'{}' db",
    "<password>{}</password>",
    '<ns:hub_token type="x">{}</ns:hub_token>',
    "&lt;dbPassword&gt;{}&lt;/dbPassword&gt;",
    '<entry key="password">{}</entry>',
    '<add key="HF_TOKEN" value="{}" />',
    'api_keys: {{"a": "{}", "b": "{}"}}',
    "cookies={{'session': '{}'}}",
    "api_keys:\n  a: {}\n  b: '{}'\nc: 1",
    "api.key={}",
    "my.api.key: {}",
    "auth.token = {}",
    "--wandb.api_key {}",
    "OPENAI_API_KEY_2={}",
)
SHAPED = (
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz01234567",
    "ghp_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "github_pat_11ABCDEFG0aBcDeFgHiJkLmNoP_qRsTuV",
    "glpat-AbCdEfGhIjKlMnOpQrSt",
    "AKIAIOSFODNN7EXAMPLE",
    "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0",
    "glrt-AbCdEfGhIjKlMnOpQrSt",
    "npm_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "gsk_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "xai-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "r8_AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "pplx-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789",
    "dckr_pat_AbCdEfGhIjKlMnOpQrStUvWxY",
    "ya29.a0AbCdEfGhIjKlMn-OpQrSt_UvWxYz0123456789",
    "SG.AbCdEfGhIjKlMnOpQrStUv.AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_AbCdE",
)
HARMLESS = (
    "pad_token=tokenizer.eos_token",
    "eos_token: </s>",
    "tokenizer.pad_token = '<pad>'",
    "max_new_tokens=128",
    "special_tokens=['a']",
    "git+ssh://git@github.com/a/b.git",
    "https://github.com/huggingface/peft/pull/3",
    "hub_token: ${HF_TOKEN}",
    "--hub_token $HF_TOKEN",
    "hub_token=None",
    "use_auth_token=True",
    "hf_hub_download(repo_id)",
    "KeyError: 'model.embed_tokens.weight'",
    "sorted(rows, key=len)",
    "past_key_values=None",
    "model@main",
    "DEFAULT_IMAGE_TOKEN = '<image>'",
    "PAD_TOKEN = tokenizer.eos_token",
    "unexpected token: 12 of 2048",
    "special token: image_placeholder_1",
    "http://[::1]:80/a@b",
    "OLDPWD=/home",
    "its use_auth_token, which transformers no longer sets",
    "from x import Ed25519PrivateKey, Ed25519PublicKey",
    "password: '${PASSWORD}'",
    "password='<your password>'",
    "run wandb login first",
    "docker run -u 1000:1000 -p 8080:80 image",
    "docker run --user $(id -u):$(id -g) image",
    "sorted(rows, key=str.lower)",
    "special_tokens: [a, b]",
    "secrets: [$HF_TOKEN]",
    "cookie = {}",
    "pwd=/home/user1/project2",
    "python -u train.py",
    "auth: none",
    "added_tokens:\n  - <s>\n  - a1b2c3d4e5f6a7b8c9",
    "KeyError: key: model.layers.0.self_attn.q_proj",
    "key: epoch_10_of_model_1",
    "password: ${DB_PASSWORD:-$OTHER}",
    "HF_TOKEN=${HF_TOKEN:-}",
    "HF_TOKEN=$(echo $OTHER)",
    "HF_TOKEN=$(cat ~/.token)",
    "密码：请联系管理员",
    "令牌：128",
    "特殊令牌: <pad>",
    "mysql -u root -p db",
    "mysql -h host -P 3306 -p",
    "<password>${PASSWORD}</password>",
    "<token>eos</token>",
    '<a href="/reset-password">Forgot</a>',
    "api_key: ''\nrevision: 5a5a5a5a5a5a5a5a5a5a5a5a",
    "f'api_key={arguments.api_key}'",
    "cookies = {}",
    "r8_model_of_a_run",
    "xai-explainable-models",
    "for name in api.keys(): print(name)",
    "openssl -out api.key",
    "private.key: unknown option",
    "msg.size=3 and ya29.5",
    "SG.model.layers.0",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "torch 2.5.0+cu124.with.pypi.cudnn, revision 5a5a5a5a5a5a5a5a5a5a5a5a",
)


@pytest.mark.parametrize("place", PLACES)
def test_a_secret_is_known_by_its_place(place: str) -> None:
    text = masked(place.format(*2 * [SECRET]))
    assert SECRET not in text and HIDDEN in text
    assert masked(text) == text


@pytest.mark.parametrize("secret", SHAPED)
@pytest.mark.parametrize("around", ["{}", "got {} here", "x='{}'", '["{}"]', "/path/{}.json"])
def test_a_secret_is_known_by_its_shape(secret: str, around: str) -> None:
    assert secret not in masked(around.format(secret))


@pytest.mark.parametrize("path", sorted(HEALTHY.glob("*")), ids=lambda path: path.name)
def test_ordinary_logs_stay(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert masked(text) == text


@pytest.mark.parametrize("text", HARMLESS)
def test_words_of_models_and_plain_addresses_stay(text: str) -> None:
    assert masked(text) == text


def test_a_key_without_an_end_hides_nothing_behind_it() -> None:
    text = masked(
        '{"a": "-----BEGIN RSA PRIVATE KEY-----\\nAbC/+=\\n", "b": 1}\n<p>-----BEGIN PRIVATE KEY-----\nAbC</p>'
    )
    assert text == '{"a": "-----BEGIN RSA PRIVATE KEY-----***", "b": 1}\n<p>-----BEGIN PRIVATE KEY-----***\n</p>'


def test_a_tree_is_masked_by_the_names_of_its_values_too() -> None:
    tree = {"training": {"hub_token": "abc", "pad_token": "<pad>"}, "seen": ["https://u:p@h/x", 3, None]}
    assert without_secrets(tree) == {
        "training": {"hub_token": HIDDEN, "pad_token": "<pad>"},
        "seen": [f"https://{HIDDEN}@h/x", 3, None],
    }


@pytest.mark.parametrize(
    ("tree", "expected"),
    [
        ({"hub_tokens": ["abc", {"a": "b"}]}, {"hub_tokens": [HIDDEN, {"a": HIDDEN}]}),
        ({"api": {"url": "x", "key": "abc"}}, {"api": {"url": "x", "key": HIDDEN}}),
        ({"username": "me", "key": "abc"}, {"username": "me", "key": HIDDEN}),
        ({"env": [{"name": "HF_TOKEN", "value": "abc"}]}, {"env": [{"name": "HF_TOKEN", "value": HIDDEN}]}),
        ({"password": 12345678, "api_key": True}, {"password": HIDDEN, "api_key": True}),
        ({"cuda": {"token": SECRET}, "cuda.token": SECRET}, {"cuda": {"token": HIDDEN}, "cuda.token": HIDDEN}),
        ({"NCCL_TOKEN": "abc", "a.api.key": "abc"}, {"NCCL_TOKEN": HIDDEN, "a.api.key": HIDDEN}),
        ({SHAPED[1]: 1, "a_token": "<pad>"}, {HIDDEN: 1, "a_token": "<pad>"}),
        ({"headers": {"Cookie": "a=b"}}, {"headers": {"Cookie": HIDDEN}}),
        ({"key": "abc", "special_tokens": ["<s>"]}, {"key": "abc", "special_tokens": ["<s>"]}),
    ],
)
def test_what_a_secret_name_leads_to_is_masked_throughout(tree: object, expected: object) -> None:
    assert without_secrets(tree) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('"/home/jane/run/.venv"', '"~/run/.venv"'),
        ('"/Users/jane/run"', '"~/run"'),
        ('"C:\\\\Users\\\\jane\\\\run"', '"~\\\\run"'),
        ("/srv/home-of-models/x", "/srv/home-of-models/x"),
    ],
)
def test_a_home_folder_is_a_tilde(text: str, expected: str) -> None:
    assert without_homes(text) == expected


def test_ones_own_home_is_a_tilde_wherever_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/data/users/jane")
    assert without_homes("/data/users/jane/run /data/users/janet") == "~/run /data/users/janet"


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(PLACES),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30),
    st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=30),
)
@example(PLACES[0], "--a-", "@")
def test_what_stands_around_a_secret_does_not_save_it(place: str, before: str, after: str) -> None:
    assert SECRET not in masked(f"{before}\n{place.format(*2 * [SECRET])}\n{after}")


@pytest.mark.parametrize(
    "unit",
    [
        "a_",
        "eyJ-",
        "?token",
        ";key",
        "https://",
        "api_key ",
        "bearer ",
        "--a-",
        "env ",
        "token  =  ",
        "sk-",
        "\\",
        "://a:b",
        "proxy:a.",
        "A_TOKEN ",
        "password:\n",
        "api:\n",
        "api: {",
        "api_keys:\n- ",
        "secret: [",
        "curl -u ",
        "wandb login -a ",
        "docker ",
        "cookie: ",
        "echo ",
        "config set a_",
        "auth=('",
        "key: a1",
        "login a password ",
        "password=${a:-",
        "password=$(echo ",
        "密码：",
        "mysql a",
        "<password>",
        "<password ",
        "<a:",
        "cookies={'a':",
        "password:\n a: b\n",
        "oc.env:",
    ],
)
def test_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def seconds(size: int) -> float:
        started = time.process_time()
        masked(unit * (size // len(unit)))
        return time.process_time() - started

    masked(unit)
    assert seconds(400_000) < 20 * max(seconds(100_000), 0.02)
