/** The providers whose submit is the whole call, or nearly: OpenAI, Stability, Ideogram, Recraft, ElevenLabs, text models. */
import { bearer, type FakeAnswer, type FakeCall, type FakeCard, MP4_BYTES, tooFastOnce } from './fake-card.ts'

const openaiError = (status: number, code: string, message: string): FakeAnswer => ({
  status,
  json: { error: { message, type: 'invalid_request_error', param: null, code } },
})

const OPENAI: Readonly<Record<string, FakeAnswer>> = {
  policy: openaiError(400, 'moderation_blocked', 'Your request was rejected by the safety system.'),
  'policy by text': openaiError(400, '', 'Your request was rejected as a result of our safety system.'),
  invalid: openaiError(400, 'invalid_value', 'Invalid size'),
  quota: openaiError(429, 'insufficient_quota', 'You exceeded your current quota, sk-fake-openai-key'),
  blocked: { status: 403, json: { error: { message: 'account blocked', code: 'access_denied' } } },
  failure: openaiError(500, 'server_error', 'oops'),
  'no output': { json: { created: 1, data: [{ revised_prompt: 'a cat' }] } },
  'no json': { body: '<html>gateway</html>', headers: { 'content-type': 'text/html' } },
}

const RESPONSE: FakeAnswer = {
  json: {
    id: 'r',
    status: 'completed',
    output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hello' }] }],
    usage: {
      input_tokens: 3,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 5,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 8,
    },
  },
}

function openai(call: FakeCall): FakeAnswer {
  const refusal = tooFastOnce(call, openaiError(429, 'rate_limit_exceeded', 'slow down')) ?? OPENAI[call.scenario]
  if (refusal !== undefined) return refusal
  call.begin()
  if (call.request.path.endsWith('/responses')) return RESPONSE
  return {
    json: {
      created: 1,
      size: '1024x1024',
      data: [{ b64_json: 'iVBORw0KGgo=' }],
      usage: { input_tokens: 10, output_tokens: 4160, total_tokens: 4170 },
    },
  }
}

function openaiVideo(call: FakeCall): FakeAnswer {
  const { params, request } = call
  const id = params[0] ?? call.begin()
  const isDone = request.method === 'GET' && call.countPoll(id) > call.pendingPolls
  const ended = isDone ? { status: 'completed', progress: 100, completed_at: 2 } : { status: 'queued', progress: 0 }
  return { json: { id, object: 'video', created_at: 1, model: 'sora-2', ...ended } }
}

export const openaiFake: FakeCard = {
  provider: 'openai',
  basePath: '/v1',
  key: 'sk-fake-openai-key',
  isKnown: bearer('sk-fake-openai-key'),
  unauthorized: openaiError(401, 'invalid_api_key', 'Incorrect API key provided: sk-fake-openai-key'),
  routes: [
    ['POST', /^\/(images\/generations|images\/edits|responses)$/, openai],
    ['GET', /^\/responses\/r$/, () => RESPONSE],
    ['POST', /^\/videos$/, openaiVideo],
    ['GET', /^\/videos\/([^/]+)$/, openaiVideo],
    ['GET', /^\/videos\/[^/]+\/content$/, () => ({ headers: { 'content-type': 'video/mp4' }, body: MP4_BYTES })],
  ],
}

const STABILITY: Readonly<Record<string, FakeAnswer>> = {
  // A blurred picture comes along with the refusal.
  policy: { json: { image: 'iVBORw0KGgo=', finish_reason: 'CONTENT_FILTERED', seed: 1 } },
  'policy at the door': {
    status: 403,
    json: { id: 'x', name: 'content_moderation', errors: ['Your request was flagged'] },
  },
  invalid: { status: 400, json: { id: 'x', name: 'bad_request', errors: ['prompt: cannot be blank'] } },
  failure: { status: 500, json: { id: 'x', name: 'internal_error', errors: ['oops'] } },
}

function stability(call: FakeCall): FakeAnswer {
  const refusal =
    tooFastOnce(call, { status: 429, json: { name: 'rate_limit_exceeded', errors: [] } }) ?? STABILITY[call.scenario]
  if (refusal !== undefined) return refusal
  const id = call.begin()
  // The other upscalers answer at once.
  if (call.request.path.endsWith('/creative')) return { json: { id } }
  return { json: { image: 'iVBORw0KGgo=', finish_reason: 'SUCCESS', seed: 343940597 } }
}

function stabilityResult(call: FakeCall): FakeAnswer {
  const [id] = call.params
  if (call.countPoll(id) <= call.pendingPolls) return { status: 202, json: { id, status: 'in-progress' } }
  if (call.scenario === 'late policy') return { json: { result: 'iVBORw0KGgo=', finish_reason: 'CONTENT_FILTERED' } }
  return { json: { result: 'iVBORw0KGgo=', finish_reason: 'SUCCESS', seed: 5 } }
}

export const stabilityFake: FakeCard = {
  provider: 'stability',
  basePath: '',
  key: 'fake-stability-key',
  isKnown: bearer('fake-stability-key'),
  unauthorized: { status: 401, json: { name: 'unauthorized', errors: ['no'] } },
  routes: [
    ['POST', /^\/v2beta\/stable-image\/(generate|upscale)\/[a-z0-9]+$/, stability],
    ['GET', /^\/v2beta\/results\/([^/]+)$/, stabilityResult],
  ],
}

const IDEOGRAM: Readonly<Record<string, FakeAnswer>> = {
  policy: { status: 422, json: { error: 'Prompt failed the safety checks' } },
  'policy inside success': { json: { created: 'now', data: [{ url: '', is_image_safe: false }] } },
  invalid: { status: 400, json: { error: 'resolution is not supported' } },
  failure: { status: 500, json: { error: 'oops' } },
}

function ideogram(call: FakeCall): FakeAnswer {
  const refusal = tooFastOnce(call, { status: 429, json: { error: 'too many in flight' } }) ?? IDEOGRAM[call.scenario]
  if (refusal !== undefined) return refusal
  call.begin()
  const safe = { url: 'https://ideogram.example/1.png?exp=1', is_image_safe: true, seed: 1 }
  const data = call.scenario === 'one unsafe' ? [{ url: null, is_image_safe: false }, safe] : [safe]
  return { json: { created: '2026-01-01T00:00:00Z', data } }
}

export const ideogramFake: FakeCard = {
  provider: 'ideogram',
  basePath: '',
  key: 'fake-ideogram-key',
  isKnown: (headers) => headers['api-key'] === 'fake-ideogram-key' && headers.authorization === undefined,
  unauthorized: { status: 401, json: { error: 'no' } },
  routes: [['POST', /^\/v1\/ideogram-v[34]\/(generate|edit|remix|reframe)$/, ideogram]],
}

const RECRAFT: Readonly<Record<string, FakeAnswer>> = {
  policy: { status: 400, body: 'prompt violates content policy', headers: { 'content-type': 'text/plain' } },
  invalid: { status: 400, json: { code: 'invalid_size', message: 'size is not supported' } },
  failure: { status: 500, body: 'oops' },
}

function recraft(call: FakeCall): FakeAnswer {
  const refusal = tooFastOnce(call, { status: 429, body: 'too many images' }) ?? RECRAFT[call.scenario]
  if (refusal !== undefined) return refusal
  call.begin()
  const isVector = call.request.path.endsWith('/vectorize') || call.request.json?.['style'] === 'vector_illustration'
  const image = { image_id: 'i', url: `https://img.recraft.example/1${isVector ? '.svg' : ''}` }
  // What changes one picture answers with one, and not with a list.
  const isOne = /(vectorize|removeBackground|crispUpscale|creativeUpscale)$/.test(call.request.path)
  return { json: { created: 1, credits: 40, ...(isOne ? { image } : { data: [image] }) } }
}

export const recraftFake: FakeCard = {
  provider: 'recraft',
  basePath: '/v1',
  key: 'fake-recraft-key',
  isKnown: bearer('fake-recraft-key'),
  unauthorized: { status: 401, body: 'request unauthorized', headers: { 'content-type': 'text/plain' } },
  routes: [['POST', /^\/images\/[A-Za-z]+$/, recraft]],
}

const detail = (status: number, word: string, message: string): FakeAnswer => ({
  status,
  json: { detail: { status: word, message } },
})

const ELEVENLABS: Readonly<Record<string, FakeAnswer>> = {
  policy: detail(400, 'content_against_policy', 'This text is against our policy.'),
  invalid: detail(400, 'max_character_limit_exceeded', 'too long'),
  'invalid list': {
    status: 422,
    json: { detail: [{ loc: ['body', 'inputs'], msg: 'Field required', type: 'missing' }] },
  },
  quota: detail(401, 'quota_exceeded', 'This request exceeds your quota.'),
  failure: { status: 500, body: 'oops' },
  'no output': { headers: { 'content-type': 'audio/mpeg' }, body: '' },
}

function elevenlabs(call: FakeCall): FakeAnswer {
  const refusal = tooFastOnce(call, detail(429, 'too_many_concurrent_requests', 'wait')) ?? ELEVENLABS[call.scenario]
  if (refusal !== undefined) return refusal
  call.begin()
  return { headers: { 'content-type': 'audio/mpeg', 'character-cost': '13' }, body: Buffer.from('ID3 sound') }
}

export const elevenlabsFake: FakeCard = {
  provider: 'elevenlabs',
  basePath: '',
  key: 'fake-eleven-key',
  isKnown: (headers) => headers['xi-api-key'] === 'fake-eleven-key',
  unauthorized: detail(401, 'invalid_api_key', 'Invalid API key'),
  routes: [['POST', /^\/v1\/(text-to-dialogue|sound-generation|text-to-speech\/[^/]+)$/, elevenlabs]],
}

function anthropic(call: FakeCall): FakeAnswer {
  const wait = tooFastOnce(call, { status: 529, json: { error: { type: 'overloaded_error', message: 'busy' } } })
  if (wait !== null) return wait
  if (call.scenario === 'invalid')
    return { status: 400, json: { error: { type: 'invalid_request_error', message: 'bad' } } }
  if (call.scenario === 'failure') return { status: 500, json: { error: { type: 'api_error', message: 'oops' } } }
  call.begin()
  return {
    json: {
      id: 'm',
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 3, output_tokens: 4 },
    },
  }
}

export const anthropicFake: FakeCard = {
  provider: 'anthropic',
  basePath: '/v1',
  key: 'fake-anthropic-key',
  isKnown: (headers) => headers['x-api-key'] === 'fake-anthropic-key' && headers['anthropic-version'] === '2023-06-01',
  unauthorized: { status: 401, json: { error: { type: 'authentication_error', message: 'no' } } },
  routes: [['POST', /^\/messages$/, anthropic]],
}

const OPENROUTER: Readonly<Record<string, FakeAnswer>> = {
  policy: { status: 403, json: { error: { code: 403, message: 'flagged', metadata: { reasons: ['violence'] } } } },
  invalid: { status: 400, json: { error: { code: 400, message: 'no such model' } } },
  'no funds': { status: 402, json: { error: { code: 402, message: 'Insufficient credits' } } },
  // The vendor behind it failed after the head of the answer had left.
  'failure inside success': { json: { id: 'g', error: { code: 502, message: 'Provider returned error' } } },
  failure: { status: 500, json: { error: { code: 500, message: 'oops' } } },
  'no output': { json: { id: 'g', choices: [] } },
}

function openrouter(call: FakeCall): FakeAnswer {
  const refusal =
    tooFastOnce(call, { status: 429, json: { error: { code: 429, message: 'slow down' } } }) ??
    OPENROUTER[call.scenario]
  if (refusal !== undefined) return refusal
  call.begin()
  return {
    json: {
      id: 'g',
      model: 'vendor/name',
      choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: 'Hello' } }],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, cost: 0.00042 },
    },
  }
}

export const openrouterFake: FakeCard = {
  provider: 'openrouter',
  basePath: '/api/v1',
  key: 'fake-openrouter-key',
  isKnown: bearer('fake-openrouter-key'),
  unauthorized: { status: 401, json: { error: { code: 401, message: 'No auth credentials found' } } },
  routes: [['POST', /^\/chat\/completions$/, openrouter]],
}
