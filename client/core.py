class AtelierError(Exception):
    """Refused by the service, or not reached."""

    def __init__(self, message: str, code: str, status: int = 0, details: Any = None, request_id: Optional[str] = None) -> None:
        super().__init__(message)
        # What to act on: the code of the refusal, or "unreachable", "not_atelier", "webhook_refused", "timeout".
        self.code = code
        # Of the answer; 0: there was none.
        self.status = status
        # What the refusal says beside its code and its message.
        self.details = details
        # Under which the service's log has this request; None: there was no answer.
        self.request_id = request_id


class Event(NamedTuple):
    """One of a stream."""

    event: str
    data: Any


# A file that is sent: bytes, or a file that was opened for reading bytes. In a form, bytes may have a name: ("cat.png", b"...").
Bytes = Union[bytes, BinaryIO]
FormFile = Union[bytes, BinaryIO, Tuple[str, Union[bytes, BinaryIO]]]
OnResponse = Callable[[http.client.HTTPResponse], None]


class _Asker:
    """Sends what an operation needs. It repeats a request only when that cannot do a thing twice: after 429, which refuses before
    anything is done, always; after 502, 503, 504 or a broken connection only where the method, or an idempotency key, makes it count
    once. An operation that takes such a key is given one when the caller gives none."""

    def __init__(self, base_url: Optional[str], token: Optional[str], attempts: int, timeout: float) -> None:
        self.base_url = (base_url or os.environ.get("ATELIER_BASE_URL") or "http://127.0.0.1:8189").rstrip("/")
        self._token = token if token is not None else os.environ.get("ATELIER_TOKEN")
        self._attempts = attempts
        self._timeout = timeout

    def ask(
        self,
        method: str,
        path: str,
        *,
        query: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, Any]] = None,
        body: Any = None,
        body_type: Optional[str] = None,
        accept: Optional[str] = None,
        on_response: Optional[OnResponse] = None,
    ) -> http.client.HTTPResponse:
        pairs = [pair for name, value in (query or {}).items() for pair in _to_pairs(name, value)]
        url = self.base_url + path + ("?" + urllib.parse.urlencode(pairs) if pairs else "")
        sent = {name: str(value) for name, value in (headers or {}).items() if value is not None}
        if "Idempotency-Key" in (headers or {}):
            sent.setdefault("Idempotency-Key", uuid.uuid4().hex)
        if accept is not None:
            sent["Accept"] = accept
        data, content_type = _to_body(body, body_type)
        if content_type is not None:
            sent["Content-Type"] = content_type
        is_repeatable = method not in ("POST", "PATCH") or "Idempotency-Key" in sent
        # What was read of a file cannot be sent again.
        attempts = self._attempts if data is None or isinstance(data, bytes) else 1
        for attempt in range(1, attempts + 1):
            pause = 0.25 * 2 ** (attempt - 1)
            try:
                response: http.client.HTTPResponse = urllib.request.urlopen(self._request(method, url, data, sent), timeout=self._timeout)
                if on_response is not None:
                    on_response(response)
                return response
            except urllib.error.HTTPError as error:
                with error:
                    refused = _to_error(error)
                asked = error.headers.get("Retry-After") or ""
                pause = float(asked) if asked.isdigit() else pause
                is_passing = error.code == 429 or (is_repeatable and error.code in (502, 503, 504))
                if attempt == attempts or not is_passing or pause > 60:
                    raise refused from None
            except (OSError, http.client.HTTPException) as error:
                if attempt == attempts or not is_repeatable:
                    raise AtelierError("cannot reach %s: %s" % (url, error), "unreachable") from error
            time.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    def _request(self, method: str, url: str, data: Any, headers: Dict[str, str]) -> urllib.request.Request:
        request = urllib.request.Request(url, data=data, headers=headers, method=method)
        # The token goes to the service only: a redirect may lead to where files are.
        if self._token:
            request.add_unredirected_header("Authorization", "Bearer " + self._token)
        return request

    def ask_json(self, method: str, path: str, **how: Any) -> Any:
        with self.ask(method, path, accept="application/json", **how) as response:
            text = response.read()
            try:
                return json.loads(text) if text else None
            except ValueError:
                message = "%s answered something that is not JSON: is it an Atelier service?" % response.url
                raise AtelierError(message, "not_atelier", response.status) from None

    def ask_nothing(self, method: str, path: str, **how: Any) -> None:
        self.ask(method, path, **how).close()

    def ask_events(self, method: str, path: str, **how: Any) -> Iterator[Event]:
        with self.ask(method, path, accept="text/event-stream", **how) as response:
            event, data = "message", []  # type: Tuple[str, List[str]]
            for line in response:
                field, _, value = line.decode().rstrip("\r\n").partition(":")
                value = value[1:] if value.startswith(" ") else value
                if field == "event":
                    event = value
                elif field == "data":
                    data.append(value)
                elif field == "" and value == "":
                    if data:
                        yield Event(event, _to_value("\n".join(data)))
                    event, data = "message", []


class _Operations:
    def __init__(self, asker: _Asker) -> None:
        self._asker = asker


def pages(operation: Callable[..., Any], by: str = "cursor", **arguments: Any) -> Iterator[Any]:
    """Every page of a list: for page in pages(client.list_jobs, limit=100). "by" names what the operation takes for the next page
    where that is not "cursor": pages(client.admin.list_accounts, by="after")."""
    while True:
        page = operation(**arguments)
        yield page
        following = page.get("next_cursor") or page.get("nextCursor") or page.get("next")
        if not following:
            return
        arguments[by] = following


def wait_until(read: Callable[[], _T], is_done: Callable[[_T], bool], *, every: float = 1.0, timeout: float = 600.0) -> _T:
    """Asks until the answer is what was waited for. What is waited for goes on all the same when the time is over."""
    ends_at = time.monotonic() + timeout
    while True:
        value = read()
        if is_done(value):
            return value
        left = ends_at - time.monotonic()
        if left <= 0:
            raise AtelierError("it did not come to that within %s s" % timeout, "timeout", details=value)
        time.sleep(min(every, left))


def verify_webhook(secret: str, headers: Mapping[str, str], body: bytes, *, tolerance: float = 300.0) -> Any:
    """The message, once its signature (Standard Webhooks) and its time are right. "body" is what came, before anything parsed it."""
    told = {name.lower(): value for name, value in headers.items()}
    identity, timestamp = told.get("webhook-id", ""), told.get("webhook-timestamp", "")
    if not timestamp.isdigit() or abs(time.time() - int(timestamp)) > tolerance:
        raise AtelierError("the message is not believed: its time is missing, or too far from ours", "webhook_refused")
    key = base64.b64decode(secret[6:] if secret.startswith("whsec_") else secret)
    digest = hmac.new(key, ("%s.%s." % (identity, timestamp)).encode() + body, hashlib.sha256).digest()
    right = "v1," + base64.b64encode(digest).decode()
    # Several while a secret is being replaced by another.
    if not any(hmac.compare_digest(right, each) for each in told.get("webhook-signature", "").split(" ")):
        message = "the message is not believed: no signature of it is right. Is this the secret of this webhook?"
        raise AtelierError(message, "webhook_refused")
    return json.loads(body)


def _part(name: str, value: Any) -> str:
    # An empty part, or one of dots, would lead to another operation.
    if str(value).strip(".") == "" and len(str(value)) < 3:
        raise ValueError("%s must not be empty: it is a part of the address" % name)
    return urllib.parse.quote(str(value), safe="")


def _to_pairs(name: str, value: Any) -> List[Tuple[str, str]]:
    """Lists with commas between, maps as name[key]=value: all that the specification has."""
    if value is None:
        return []
    if isinstance(value, (list, tuple)):
        return [(name, ",".join(_to_text(each) for each in value))]
    if isinstance(value, dict):
        return [("%s[%s]" % (name, key), _to_text(each)) for key, each in value.items()]
    return [(name, _to_text(value))]


def _to_text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _to_body(body: Any, body_type: Optional[str]) -> Tuple[Any, Optional[str]]:
    if body is None:
        return None, None
    if body_type == "multipart/form-data":
        return _to_form(body)
    if isinstance(body, (bytes, bytearray)) or hasattr(body, "read"):
        return (bytes(body) if isinstance(body, bytearray) else body), body_type or "application/octet-stream"
    return json.dumps(body).encode(), "application/json"


def _to_form(members: Mapping[str, Any]) -> Tuple[bytes, str]:
    """Files come last, so that what is said of them can be judged before they are read. A list is one part for each of its members."""
    boundary = uuid.uuid4().hex
    fields, files = [], []  # type: Tuple[List[bytes], List[bytes]]
    for name, value in members.items():
        for each in value if isinstance(value, list) else [value]:
            if each is None:
                continue
            file_name, content = each if isinstance(each, tuple) else (os.path.basename(str(getattr(each, "name", name))), each)
            if isinstance(content, (bytes, bytearray)) or hasattr(content, "read"):
                safe = "".join("_" if character in '\\"\r\n' else character for character in file_name)
                content_type = mimetypes.guess_type(file_name)[0] or "application/octet-stream"
                head = 'Content-Disposition: form-data; name="%s"; filename="%s"\r\nContent-Type: %s' % (name, safe, content_type)
                files.append(head.encode() + b"\r\n\r\n" + (content.read() if hasattr(content, "read") else bytes(content)))
            else:
                fields.append(('Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (name, _to_text(content))).encode())
    mark = ("--" + boundary).encode()
    parts = [mark + b"\r\n" + part + b"\r\n" for part in fields + files]
    return b"".join(parts) + mark + b"--\r\n", "multipart/form-data; boundary=" + boundary


def _to_value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _to_error(error: urllib.error.HTTPError) -> AtelierError:
    """The surfaces of the service have envelopes of their own; what is common to them is a code and a message."""
    request_id = error.headers.get("X-Service-Request-Id") or error.headers.get("X-Comfy-Request-Id")
    try:
        body = json.loads(error.read())
        inner = body["error"] if isinstance(body.get("error"), dict) else body
    except (ValueError, AttributeError):
        body, inner = None, {}
    code = inner.get("code") or inner.get("type") or inner.get("error_type") or inner.get("error") or "http_%d" % error.code
    message = inner.get("message") or inner.get("detail") or "%s answered %d" % (error.url, error.code)
    if isinstance(message, list):
        # The router names every input that is wrong.
        message = "; ".join("%s: %s" % (".".join(map(str, each.get("loc", ["input"]))), each.get("msg")) for each in message)
    return AtelierError(str(message), str(code), error.code, inner.get("details", body), request_id)
