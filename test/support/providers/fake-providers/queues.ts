/** The providers with a queue of their own: fal, Replicate, xAI, Wan, WaveSpeed, Runware, Higgsfield. */
import { bearer, type FakeAnswer, type FakeCall, type FakeCard, tooFastOnce } from './fake-card.ts'

const falPolicy = {
  detail: [
    {
      loc: ['body', 'prompt'],
      msg: 'The content could not be processed',
      type: 'content_policy_violation',
      url: 'https://docs.fal.example',
      input: 'x',
    },
  ],
}
const falInvalid = {
  detail: [
    {
      loc: ['body', 'num_images'],
      msg: 'Input should be less than or equal to 4',
      type: 'less_than_equal',
      ctx: { le: 4 },
      input: 9,
    },
  ],
}

function falSubmit(call: FakeCall): FakeAnswer {
  const wait = tooFastOnce(call, { status: 429, json: { detail: 'too many' } })
  if (wait !== null) return wait
  const id = call.begin()
  // The owner and the app, without what follows: the addresses given back drop the rest of the path.
  const app = call.request.path.split('/').slice(1, 3).join('/')
  const at = (rest: string) => `http://127.0.0.1:${call.at('x', '').split(':')[2]}/${app}/requests/${id}${rest}`
  const urls = { status_url: at('/status'), response_url: at(''), cancel_url: at('/cancel') }
  return { json: { request_id: id, status: 'IN_QUEUE', queue_position: 0, ...urls } }
}

function falStatus(call: FakeCall): FakeAnswer {
  const [, id] = call.params
  const count = call.countPoll(id)
  if (count <= call.pendingPolls)
    return {
      status: 202,
      json: {
        request_id: id,
        status: call.scenario === 'unknown state' ? 'WARMING' : ['IN_QUEUE', 'IN_PROGRESS'][count - 1],
      },
    }
  return { json: { request_id: id, status: 'COMPLETED' } }
}

function falResult(call: FakeCall): FakeAnswer {
  const { scenario } = call
  if (scenario === 'policy') return { status: 422, json: falPolicy }
  if (scenario === 'invalid') return { status: 422, json: falInvalid }
  if (scenario === 'failure')
    return {
      status: 500,
      headers: { 'x-fal-error-type': 'runner_server_error' },
      json: { detail: 'boom', error_type: 'runner_server_error' },
    }
  if (scenario === 'timeout')
    return { status: 504, headers: { 'x-fal-request-timeout-type': 'user' }, json: { detail: 'timed out' } }
  if (scenario === 'no output') return { json: { images: [] } }
  return {
    json: {
      images: [{ url: 'https://v3.fal.example/1.png' }],
      video: { url: 'https://v3.fal.example/1.mp4' },
      seed: 18446744073709552000,
    },
  }
}

export const falFake: FakeCard = {
  provider: 'fal',
  basePath: '',
  key: 'id-of-fal:secret-of-fal',
  isKnown: ({ authorization }) => authorization === 'Key id-of-fal:secret-of-fal',
  unauthorized: { status: 401, json: { detail: 'Unauthorized' } },
  routes: [
    ['GET', /^\/([^/]+\/[^/]+)\/requests\/([^/]+)\/status$/, falStatus],
    ['GET', /^\/([^/]+\/[^/]+)\/requests\/([^/]+)$/, falResult],
    [
      'PUT',
      /^\/([^/]+\/[^/]+)\/requests\/([^/]+)\/cancel$/,
      () => ({ status: 202, json: { status: 'CANCELLATION_REQUESTED' } }),
    ],
    ['POST', /^\/[^/]+\/[^/]+/, falSubmit],
  ],
}

function replicateSubmit(call: FakeCall): FakeAnswer {
  const wait = tooFastOnce(call, {
    status: 429,
    headers: { 'retry-after': '2' },
    json: { detail: 'throttled', status: 429 },
  })
  if (wait !== null) return wait
  if (call.scenario === 'invalid')
    return {
      status: 422,
      json: { title: 'Input validation failed', detail: '- input.prompt: is required', status: 422 },
    }
  if (call.scenario === 'no funds')
    return { status: 402, json: { title: 'Payment required', detail: 'add a card', status: 402 } }
  const id = call.begin()
  const host = call.scenario === 'poll url elsewhere' ? 'collector.example' : 'api.replicate.com'
  return { status: 201, json: { id, status: 'starting', urls: { get: call.at(host, `/v1/predictions/${id}`) } } }
}

function replicatePoll(call: FakeCall): FakeAnswer {
  const [id] = call.params
  const { scenario } = call
  if (call.countPoll(id) <= call.pendingPolls)
    return { json: { id, status: scenario === 'unknown state' ? 'booting' : 'processing', output: null, error: null } }
  if (scenario === 'policy')
    return {
      json: { id, status: 'failed', output: null, error: 'The input or output was flagged as sensitive. (E005)' },
    }
  if (scenario === 'failure') return { json: { id, status: 'failed', output: null, error: 'CUDA out of memory' } }
  if (scenario === 'aborted') return { json: { id, status: 'aborted', output: null, error: null } }
  return {
    json: {
      id,
      status: 'succeeded',
      output: ['https://replicate.example/1.webp'],
      error: null,
      metrics: { predict_time: 0.7 },
    },
  }
}

export const replicateFake: FakeCard = {
  provider: 'replicate',
  basePath: '/v1',
  key: 'r8_fake',
  isKnown: bearer('r8_fake'),
  unauthorized: { status: 401, json: { title: 'Unauthenticated', detail: 'no', status: 401 } },
  routes: [
    ['POST', /^\/models\/[^/]+\/[^/]+\/predictions$/, replicateSubmit],
    ['GET', /^\/predictions\/([^/]+)$/, replicatePoll],
    ['POST', /^\/predictions\/([^/]+)\/cancel$/, () => ({ json: {} })],
  ],
}

function xaiImages(call: FakeCall): FakeAnswer {
  const wait = tooFastOnce(call, { status: 429, json: { code: 'resource-exhausted', error: 'too many' } })
  if (wait !== null) return wait
  const { scenario } = call
  if (scenario === 'policy') return { json: { data: [], block_reason: 'content_moderation' } }
  if (scenario === 'policy without data') return { json: { block_reason: 'content_moderation' } }
  if (scenario === 'invalid') return { status: 400, json: { error: { message: 'n must be at most 10' } } }
  if (scenario === 'failure') return { status: 500, json: { error: 'oops' } }
  if (scenario === 'empty list') return { json: { data: [] } }
  call.begin()
  return {
    json: {
      data: [{ url: call.at('imgen.x.example', '/assets/1.jpeg'), b64_json: null, mime_type: 'image/jpeg' }],
      usage: { cost_in_usd_ticks: 200_000_000 },
    },
  }
}

function xaiPoll(call: FakeCall): FakeAnswer {
  const [id] = call.params
  const { scenario } = call
  if (call.countPoll(id) <= call.pendingPolls)
    return { json: { status: scenario === 'unknown state' ? 'imagining' : 'pending', video: null } }
  if (scenario === 'policy') return { json: { status: 'done', video: { url: null, respect_moderation: false } } }
  if (scenario === 'failure') return { json: { status: 'failed', error: 'oops' } }
  if (scenario === 'expired') return { json: { status: 'expired' } }
  // What says that it is done is the address alone.
  return {
    json: {
      ...(scenario === 'no state' ? {} : { status: 'done' }),
      video: { url: call.at('vidgen.x.example', '/assets/1.mp4'), duration: 8, respect_moderation: true },
    },
  }
}

export const xaiFake: FakeCard = {
  provider: 'xai',
  basePath: '/v1',
  key: 'fake-xai-key',
  isKnown: bearer('fake-xai-key'),
  unauthorized: { status: 401, json: { code: 'unauthenticated', error: 'no' } },
  routes: [
    ['POST', /^\/images\/(generations|edits)$/, xaiImages],
    [
      'POST',
      /^\/videos\/generations$/,
      (call) => tooFastOnce(call, { status: 429, json: {} }) ?? { json: { request_id: call.begin() } },
    ],
    ['GET', /^\/videos\/([^/]+)$/, xaiPoll],
  ],
}

function wanSubmit(call: FakeCall): FakeAnswer {
  if (call.request.headers['x-dashscope-async'] !== 'enable')
    return { status: 403, json: { code: 'AccessDenied', message: 'asynchronous only' } }
  const wait = tooFastOnce(call, { status: 429, json: { code: 'Throttling.RateQuota', message: 'slow down' } })
  if (wait !== null) return wait
  if (call.scenario === 'policy')
    return { status: 400, json: { code: 'DataInspectionFailed', message: 'Input may contain inappropriate content.' } }
  if (call.scenario === 'invalid') return { status: 400, json: { code: 'InvalidParameter', message: 'size' } }
  return { json: { request_id: 'r', output: { task_id: call.begin(), task_status: 'PENDING' } } }
}

function wanPoll(call: FakeCall): FakeAnswer {
  const [task_id] = call.params
  const { scenario } = call
  const output = (task_status: string, more: object = {}) => ({
    json: { request_id: 'r', output: { task_id, task_status, ...more } },
  })
  if (call.countPoll(task_id) <= call.pendingPolls) return output(scenario === 'unknown state' ? 'UNKNOWN' : 'RUNNING')
  if (scenario === 'late policy')
    return output('FAILED', { code: 'DataInspectionFailed', message: 'Output may contain inappropriate content.' })
  if (scenario === 'failure') return output('FAILED', { code: 'InternalError', message: 'oops' })
  if (scenario === 'element refused')
    return output('SUCCEEDED', { results: [{ code: 'DataInspectionFailed', message: 'no' }] })
  return output('SUCCEEDED', {
    video_url: 'https://dashscope.example/v.mp4',
    results: [{ url: 'https://dashscope.example/i.png' }],
  })
}

export const wanFake: FakeCard = {
  provider: 'wan',
  basePath: '/api/v1',
  key: 'fake-wan-key',
  isKnown: bearer('fake-wan-key'),
  unauthorized: { status: 401, json: { code: 'InvalidApiKey', message: 'no' } },
  routes: [
    ['POST', /^\/services\/aigc\/[a-z0-9-]+\/[a-z]+-synthesis$/, wanSubmit],
    ['GET', /^\/tasks\/([^/]+)$/, wanPoll],
  ],
}

function wavespeedPoll(call: FakeCall): FakeAnswer {
  const [id] = call.params
  const { scenario } = call
  const data = (status: string, more: object = {}) => ({
    json: { code: 200, message: 'success', data: { id, status, outputs: [], ...more } },
  })
  if (call.countPoll(id) <= call.pendingPolls) return data(scenario === 'unknown state' ? 'surfing' : 'processing')
  if (scenario === 'policy') return data('failed', { error: 'Content flagged as potentially sensitive' })
  if (scenario === 'failure') return data('failed', { error: 'oops' })
  return data('completed', { outputs: ['https://wavespeed.example/1.mp4'], timings: { inference: 900 } })
}

function wavespeedSubmit(call: FakeCall): FakeAnswer {
  const wait = tooFastOnce(call, { status: 429, json: { code: 429, message: 'too many' } })
  if (wait !== null) return wait
  if (call.scenario === 'invalid') return { status: 400, json: { code: 400, message: 'video is required' } }
  const id = call.begin()
  return {
    json: {
      code: 200,
      data: { id, status: 'created', urls: { get: call.at('api.wavespeed.ai', `/api/v3/predictions/${id}`) } },
    },
  }
}

export const wavespeedFake: FakeCard = {
  provider: 'wavespeed',
  basePath: '/api/v3',
  key: 'fake-wavespeed-key',
  isKnown: bearer('fake-wavespeed-key'),
  unauthorized: { status: 401, json: { code: 401, message: 'no' } },
  routes: [
    ['GET', /^\/predictions\/([^/]+)$/, wavespeedPoll],
    ['POST', /^\/[^/]+\/.+$/, wavespeedSubmit],
  ],
}

/** The only task of a request, which is a list. */
function runwareTask({ request }: FakeCall): Record<string, unknown> {
  const [task] = JSON.parse(request.raw.toString()) as Record<string, unknown>[]
  return task ?? {}
}

const runwareError = (code: string, message: string) => ({ errors: [{ code, message, parameter: 'positivePrompt' }] })
// The fourth version: others are refused.
const UUID_4 = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

function runwareAnswer(call: FakeCall): FakeAnswer {
  const task = runwareTask(call)
  const { taskType, taskUUID } = task
  if (taskType === 'getResponse') return runwarePoll(call, String(taskUUID))
  const wait = tooFastOnce(call, { status: 429, json: runwareError('rateLimitExceeded', 'slow down') })
  if (wait !== null) return wait
  if (!UUID_4.test(String(taskUUID))) return { status: 400, json: runwareError('invalidTaskUUID', 'no UUID v4') }
  if (call.scenario === 'invalid') return { status: 400, json: runwareError('invalidPositivePrompt', 'too short') }
  if (call.scenario === 'policy') return { status: 400, json: runwareError('contentModeration', 'it was flagged') }
  if (call.scenario === 'down') return { status: 503, json: runwareError('serviceUnavailable', 'later') }
  if (call.scenario === 'who knows') return { json: runwareError('timeoutProvider', 'no answer in time') }
  call.begin()
  if (taskType === 'videoInference') return { json: { data: [{ taskType, taskUUID, status: 'processing' }] } }
  const picture = { imageUUID: 'a', imageURL: 'https://runware.example/1.png', cost: 0.0391 }
  return { json: { data: [{ taskType, taskUUID, ...picture }] } }
}

function runwarePoll(call: FakeCall, taskUUID: string): FakeAnswer {
  const about = { taskType: 'videoInference', taskUUID }
  const state = call.scenario === 'unknown state' ? 'warming' : 'processing'
  if (call.countPoll(taskUUID) <= call.pendingPolls) return { json: { data: [{ ...about, status: state }] } }
  if (call.scenario === 'failure') return { json: { data: [{ ...about, status: 'error' }] } }
  return {
    json: { data: [{ ...about, status: 'success', videoURL: 'https://runware.example/1.mp4', cost: 1.0241 }] },
  }
}

export const runwareFake: FakeCard = {
  provider: 'runware',
  basePath: '',
  key: 'fake-runware-key',
  isKnown: bearer('fake-runware-key'),
  unauthorized: { status: 401, json: runwareError('invalidApiKey', 'no') },
  routes: [['POST', /^\/v1$/, runwareAnswer]],
}

function higgsfieldSubmit(call: FakeCall): FakeAnswer {
  const wait = tooFastOnce(call, { status: 429, json: { detail: 'too many' } })
  if (wait !== null) return wait
  if (call.scenario === 'invalid') return { status: 422, json: { detail: 'duration is out of range' } }
  const id = call.begin()
  const at = (what: string) => call.at('api.higgsfield.ai', `/requests/${id}/${what}`)
  return { json: { status: 'queued', request_id: id, status_url: at('status'), cancel_url: at('cancel') } }
}

function higgsfieldPoll(call: FakeCall): FakeAnswer {
  const [request_id = ''] = call.params
  const tell = (status: string, more: object = {}) => ({ json: { status, request_id, ...more } })
  if (call.countPoll(request_id) <= call.pendingPolls)
    return tell(call.scenario === 'unknown state' ? 'dreaming' : 'in_progress')
  if (call.scenario === 'policy') return tell('nsfw')
  if (call.scenario === 'failure') return tell('failed', { error: 'boom' })
  return tell('completed', { video: { url: 'https://higgsfield.example/1.mp4' } })
}

export const higgsfieldFake: FakeCard = {
  provider: 'higgsfield',
  basePath: '',
  key: 'fake-id:fake-secret',
  isKnown: ({ authorization }) => authorization === 'Key fake-id:fake-secret',
  unauthorized: { status: 401, json: { detail: 'no' } },
  routes: [
    ['GET', /^\/requests\/([^/]+)\/status$/, higgsfieldPoll],
    ['POST', /^\/(?:kling-video|bytedance)\/.+\/text-to-video$/, higgsfieldSubmit],
  ],
}
