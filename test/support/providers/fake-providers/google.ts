import type { FakeAnswer, FakeCall, FakeCard } from './fake-card.ts'

const error = (code: number, status: string, message: string): FakeAnswer => ({
  status: code,
  json: { error: { code, message, status } },
})
const PICTURE = { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } }

const REFUSALS: Readonly<Record<string, FakeAnswer>> = {
  policy: { json: { promptFeedback: { blockReason: 'PROHIBITED_CONTENT' } } },
  'output policy': { json: { candidates: [{ finishReason: 'IMAGE_SAFETY', content: {} }] } },
  'policy as invalid': error(400, 'INVALID_ARGUMENT', 'The prompt was blocked by our safety filters.'),
  invalid: error(400, 'INVALID_ARGUMENT', 'contents is required'),
  failure: error(500, 'INTERNAL', 'internal'),
  'no image': {
    json: { candidates: [{ finishReason: 'NO_IMAGE', content: { parts: [{ text: 'I cannot draw.' }] } }] },
  },
  denied: error(403, 'PERMISSION_DENIED', 'billing is disabled'),
}

function generate(call: FakeCall): FakeAnswer {
  if (call.scenario === 'rate' && call.submits === 1) return error(429, 'RESOURCE_EXHAUSTED', 'quota')
  const refusal = REFUSALS[call.scenario]
  if (refusal !== undefined) return refusal
  call.begin()
  const parts = [{ text: 'Here it is' }, { thought: true }, PICTURE]
  const usageMetadata = { promptTokenCount: 9, candidatesTokenCount: 1290, totalTokenCount: 1299 }
  return { json: { candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }], usageMetadata } }
}

function predict(call: FakeCall): FakeAnswer {
  if (call.scenario === 'imagen policy') return { json: { predictions: [{ raiFilteredReason: 'filtered' }] } }
  call.begin()
  return { json: { predictions: [{ mimeType: 'image/png', bytesBase64Encoded: 'iVBORw0KGgo=' }] } }
}

const isGoogleKey: FakeCard['isKnown'] = (headers) =>
  headers['x-goog-api-key'] === 'fake-google-key' || headers.authorization === 'Bearer ya29.fake-token'

export const geminiFake: FakeCard = {
  provider: 'vertexai',
  basePath: '',
  key: 'fake-google-key',
  isKnown: isGoogleKey,
  unauthorized: error(401, 'UNAUTHENTICATED', 'no'),
  routes: [
    ['POST', /models\/([a-z0-9.-]+):generateContent$/, generate],
    ['POST', /models\/([a-z0-9.-]+):predict$/, predict],
  ],
}

function submitVideo(call: FakeCall): FakeAnswer {
  if (call.scenario === 'rate' && call.submits === 1) return error(429, 'RESOURCE_EXHAUSTED', 'quota')
  if (call.scenario === 'invalid') return error(400, 'INVALID_ARGUMENT', 'durationSeconds is out of range')
  return {
    json: {
      name: `projects/p1/locations/us-central1/publishers/google/models/${call.params[0]}/operations/${call.begin()}`,
    },
  }
}

function pollVideo(call: FakeCall): FakeAnswer {
  const name = String(call.request.json?.['operationName'] ?? call.request.path.replace('/v1beta/', ''))
  const { scenario } = call
  const done = (rest: object) => ({ json: { name, done: true, ...rest } })
  if (call.countPoll(name) <= call.pendingPolls)
    return { json: scenario === 'unknown state' ? { name, done: 'soon' } : { name } }
  if (scenario === 'policy')
    return done({
      response: { raiMediaFilteredCount: 1, raiMediaFilteredReasons: ['It seems to show a known person.'] },
    })
  if (scenario === 'policy as error') return done({ error: { code: 3, message: 'violates the usage guidelines' } })
  if (scenario === 'failure') return done({ error: { code: 13, message: 'internal' } })
  if (scenario === 'fewer')
    return done({
      response: { raiMediaFilteredCount: 1, videos: [{ bytesBase64Encoded: 'AAAA', mimeType: 'video/mp4' }] },
    })
  if (scenario === 'stored')
    return done({ response: { videos: [{ gcsUri: 'gs://our-bucket/clips/1.mp4', mimeType: 'video/mp4' }] } })
  if (scenario === 'other api') {
    const uri = call.at('generativelanguage.googleapis.com', '/v1beta/files/1:download?alt=media')
    return done({ response: { generateVideoResponse: { generatedSamples: [{ video: { uri } }] } } })
  }
  const videos = [{ bytesBase64Encoded: 'AAAAIGZ0eXBpc29t', mimeType: 'video/mp4' }]
  return done({ response: { raiMediaFilteredCount: 0, videos } })
}

export const veoFake: FakeCard = {
  provider: 'veo',
  basePath: '',
  key: 'ya29.fake-token',
  isKnown: isGoogleKey,
  unauthorized: error(401, 'UNAUTHENTICATED', 'no'),
  routes: [
    ['POST', /models\/([a-z0-9.-]+):predictLongRunning$/, submitVideo],
    ['POST', /models\/([a-z0-9.-]+):fetchPredictOperation$/, pollVideo],
    ['GET', /^\/v1beta\/.+\/operations\/([^/]+)$/, pollVideo],
  ],
}
