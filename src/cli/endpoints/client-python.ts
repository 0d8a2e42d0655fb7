/** A client in Python 3.9 or newer, with nothing but its standard library. */
import type { JsonValue } from '../../../lib/json/lossless-json.ts'
import {
  type ClientFacts,
  describeInput,
  describeOutput,
  isBeyondDouble,
  toCommentLines,
  toLiteral,
  toPathPart,
} from './client-facts.ts'
import type { InputWire } from './endpoint-api.ts'

export function toPythonClient({ reference, baseUrl, endpoint, version }: ClientFacts): string {
  const { title, description } = endpoint
  const { inputs, outputs, version: number } = version
  const files = inputs.filter(({ type }) => type === 'file').map(({ name }) => `${toLiteral(name)},`)
  return [
    // Python looks for the encoding of a file in its first two lines, which are therefore always ours.
    HEAD,
    ...toComment(
      [
        ...toCommentLines(title),
        ...(description === '' ? [] : ['', ...toCommentLines(description)]),
        '',
        `Inputs of version ${number}.`,
      ],
      '',
    ),
    ...toTypedDict(
      '_Required',
      inputs.filter(({ required }) => required),
      true,
    ),
    ...toTypedDict(
      '_Optional',
      inputs.filter(({ required }) => !required),
      false,
    ),
    '',
    'class Inputs(_Required, _Optional):',
    '    pass',
    '',
    '',
    '# What a run makes, by name.',
    'Outputs = TypedDict("Outputs", {',
    ...outputs.flatMap((output) => [
      ...toComment(describeOutput(output), '    '),
      `    ${toLiteral(output.name)}: List["OutputFile"],`,
    ]),
    '})',
    '',
    `ENDPOINT = ${toLiteral(toPathPart(reference))}`,
    `BASE_URL = ${toLiteral(baseUrl)}`,
    `FILE_INPUTS = (${files.join(' ')})`,
    BODY,
  ].join('\n')
}

function toComment(lines: readonly string[], indent: string): string[] {
  return lines.map((line) => `${indent}# ${line}`.trimEnd())
}

function toTypedDict(name: string, inputs: readonly InputWire[], isTotal: boolean): string[] {
  const members = inputs.flatMap((input) => [
    ...toComment(describeInput(input), '    '),
    `    ${toLiteral(input.name)}: ${typeOf(input)},`,
  ])
  return [`${name} = TypedDict("${name}", {`, ...members, `}${isTotal ? '' : ', total=False'})`]
}

function typeOf(input: InputWire): string {
  switch (input.type) {
    case 'boolean':
      return 'bool'
    case 'integer':
    case 'seed':
      return isBeyondDouble(input) ? 'Union[int, str]' : 'int'
    case 'number':
      return 'float'
    case 'file':
      return 'FileInput'
    case 'choice':
      return input.open === true ? 'str' : toChoiceType(input.choices ?? [])
    default:
      return 'str'
  }
}

/** Literals are texts, whole numbers and switches; fractions are not among them. */
function toChoiceType(choices: readonly JsonValue[]): string {
  const isLiteral = (choice: JsonValue) =>
    typeof choice === 'string' || typeof choice === 'boolean' || Number.isSafeInteger(choice)
  if (choices.length === 0 || !choices.every(isLiteral)) return 'Union[str, float, bool]'
  const toText = (choice: JsonValue) =>
    typeof choice === 'string'
      ? toLiteral(choice)
      : choice === true
        ? 'True'
        : choice === false
          ? 'False'
          : String(choice)
  return `Literal[${[...new Set(choices.map(toText))].join(', ')}]`
}

const HEAD = `# A client of one endpoint of an Atelier service, in one file without dependencies: Python 3.9 or newer.
# Written by "atelier endpoints client"; write it again when the inputs change.
import http.client
import json
import mimetypes
import os
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from typing import Any, Dict, List, Literal, Optional, Tuple, TypedDict, Union

# The id of an asset, an https or data: address, bytes, or a file of this machine: pathlib.Path("cat.png").
FileInput = Union[str, bytes, "os.PathLike[str]"]
`

const BODY = String.raw`
_ENDED = ("succeeded", "failed", "canceled", "expired")
_PASSING = (429, 502, 503, 504)
_ATTEMPTS = 5


class OutputFile(TypedDict):
    id: str
    name: str
    content_type: str
    size_bytes: int
    url: str


class Run(TypedDict):
    id: str
    status: str
    endpoint: Dict[str, Any]
    # As they were used: defaults, and the seeds that were drawn.
    inputs: Optional[Dict[str, Any]]
    results: Outputs
    error: Optional[Dict[str, Any]]


class EndpointError(Exception):
    """Inputs that are wrong, a run that failed, a time that is over, a service that does not answer."""

    def __init__(self, message: str, code: str, status: int = 0, details: Optional[Dict[str, Any]] = None, run: Optional[Run] = None) -> None:
        super().__init__(message)
        self.code = code
        # Of the answer; 0: there was none.
        self.status = status
        self.details = details or {}
        # Every input that is wrong: name, reason, message.
        self.inputs: List[Dict[str, Any]] = self.details.get("inputs") or []
        # The run that failed, or that has not ended in time.
        self.run = run


def run(
    inputs: Inputs,
    *,
    base_url: Optional[str] = None,
    token: Optional[str] = None,
    wait: bool = True,
    timeout: float = 600.0,
    metadata: Optional[Dict[str, str]] = None,
    idempotency_key: Optional[str] = None,
) -> Run:
    """Runs the endpoint and waits for the end, at most "timeout" seconds; the run goes on all the same.

    wait=False gives the run as soon as it is recorded; get_run says how it goes on. The same idempotency_key never makes a
    second run; each call has a new one by default. base_url is that of the service (ATELIER_BASE_URL), token the key (ATELIER_TOKEN).
    """
    ends_at = time.monotonic() + timeout
    where = {"base_url": base_url, "token": token}
    body: Dict[str, Any] = {"inputs": _send_files(inputs, where)}
    if metadata is not None:
        body["metadata"] = metadata
    headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key or uuid.uuid4().hex}
    if wait:
        headers["Prefer"] = "wait=60"
    try:
        current: Run = json.loads(_ask("/endpoints/" + ENDPOINT + "/runs", where, json.dumps(body).encode(), headers))
    except EndpointError as error:
        current = get_run(_made_before(error, "job_id"), base_url=base_url, token=token)
    if not wait:
        return current
    pause = 0.5
    while current["status"] not in _ENDED:
        left = ends_at - time.monotonic()
        if left <= 0:
            raise EndpointError("the run has not ended in time", "timeout", run=current)
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, 5.0)
        current = get_run(current["id"], base_url=base_url, token=token)
    if current["status"] == "succeeded":
        return current
    problem = current.get("error") or {}
    message = problem.get("message") or "the run was " + current["status"]
    raise EndpointError(message, problem.get("code") or current["status"], 200, run=current)


def get_run(run_id: str, *, base_url: Optional[str] = None, token: Optional[str] = None) -> Run:
    name = ENDPOINT.split("@")[0]
    path = "/endpoints/" + name + "/runs/" + urllib.parse.quote(run_id, safe="")
    answer: Run = json.loads(_ask(path, {"base_url": base_url, "token": token}))
    return answer


def upload(content: bytes, name: str, *, base_url: Optional[str] = None, token: Optional[str] = None) -> Dict[str, Any]:
    """Stores a file, and gives what stands for it as an input."""
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    body, content_type = _to_form({"content_type": kind, "file_path": name}, name, kind, content)
    headers = {"Content-Type": content_type, "Idempotency-Key": uuid.uuid4().hex}
    try:
        asset_id = json.loads(_ask("/assets", {"base_url": base_url, "token": token}, body, headers))["id"]
    except EndpointError as error:
        asset_id = _made_before(error, "asset_id")
    return {"__type": "core/ASSET", "info": {"id": asset_id, "file_path": name}}


def download(output: OutputFile, *, base_url: Optional[str] = None, token: Optional[str] = None) -> bytes:
    """The bytes of an output."""
    return _ask(output["url"], {"base_url": base_url, "token": token})


def _made_before(error: EndpointError, member: str) -> str:
    """What an attempt made whose answer was lost. Raises any other error."""
    made = error.details.get(member) if error.code == "idempotency_key_reuse" else None
    if not isinstance(made, str):
        raise error
    return made


def _send_files(inputs: Inputs, where: Dict[str, Optional[str]]) -> Dict[str, Any]:
    sent: Dict[str, Any] = dict(inputs)
    for name in FILE_INPUTS:
        value = sent.get(name)
        if isinstance(value, (bytes, bytearray)):
            sent[name] = upload(bytes(value), name, **where)
        elif isinstance(value, os.PathLike):
            with open(value, "rb") as file:
                sent[name] = upload(file.read(), os.path.basename(os.fspath(value)), **where)
    return sent


def _to_form(fields: Dict[str, str], name: str, kind: str, content: bytes) -> Tuple[bytes, str]:
    boundary = uuid.uuid4().hex
    safe = name.replace("\\", "_").replace('"', "_").replace("\r", "_").replace("\n", "_")
    head = "".join('--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (boundary, key, value) for key, value in fields.items())
    head += '--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nContent-Type: %s\r\n\r\n' % (boundary, safe, kind)
    return head.encode() + content + ("\r\n--%s--\r\n" % boundary).encode(), "multipart/form-data; boundary=" + boundary


def _ask(link: str, where: Dict[str, Optional[str]], body: Optional[bytes] = None, headers: Optional[Dict[str, str]] = None) -> bytes:
    """Every request may be made again: it reads, or it has a key under which it counts once."""
    base = (where["base_url"] or os.environ.get("ATELIER_BASE_URL") or BASE_URL).rstrip("/")
    token = where["token"] or os.environ.get("ATELIER_TOKEN")
    url = base + "/api/v2" + link if link.startswith("/") else link
    request = urllib.request.Request(url, data=body, headers=headers or {})
    # The key goes to the service only: files may be elsewhere, and a redirect may lead there.
    if token and urllib.parse.urlsplit(url)[:2] == urllib.parse.urlsplit(base)[:2]:
        request.add_unredirected_header("Authorization", "Bearer " + token)
    for attempt in range(1, _ATTEMPTS + 1):
        pause = 0.25 * 2**attempt
        try:
            with urllib.request.urlopen(request, timeout=90) as response:
                answer: bytes = response.read()
                return answer
        except urllib.error.HTTPError as error:
            refused = _to_error(error)
            if attempt == _ATTEMPTS or error.code not in _PASSING:
                raise refused from None
            after = error.headers.get("Retry-After") or ""
            pause = min(float(after), 60.0) if after.isdigit() else pause
        except (OSError, http.client.HTTPException) as error:
            if attempt == _ATTEMPTS:
                raise EndpointError("cannot reach %s: %s" % (url, error), "unreachable") from error
        time.sleep(pause)
    raise AssertionError("unreachable")


def _to_error(error: urllib.error.HTTPError) -> EndpointError:
    try:
        problem = json.loads(error.read())["error"]
        return EndpointError(problem["message"], problem["code"], error.code, problem.get("details"))
    except (ValueError, KeyError, TypeError):
        return EndpointError("the service refused this without a reason", "http_%d" % error.code, error.code)
`
