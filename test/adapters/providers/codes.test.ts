/**
 * The codes that the cards list, one by one: an answer to a submit with this status and body means this. `again` is a wait
 * that is over at the second try, `ours` a trouble of our account, which callers see as a failure of the provider.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { bflFake } from '../../support/providers/fake-providers/bfl.ts'
import { byteplusFake } from '../../support/providers/fake-providers/byteplus.ts'
import {
  elevenlabsFake,
  ideogramFake,
  openaiFake,
  recraftFake,
  stabilityFake,
} from '../../support/providers/fake-providers/direct.ts'
import { type FakeAnswer, type FakeCard, startFakeProvider } from '../../support/providers/fake-providers/fake-card.ts'
import { geminiFake } from '../../support/providers/fake-providers/google.ts'
import { klingFake } from '../../support/providers/fake-providers/kling.ts'
import { minimaxFake } from '../../support/providers/fake-providers/minimax.ts'
import { replicateFake, xaiFake } from '../../support/providers/fake-providers/queues.ts'
import { runwayFake } from '../../support/providers/fake-providers/runway.ts'
import { openProviderUnderTest, shippedModel } from '../../support/providers/provider-under-test.ts'

type Meaning = 'policy' | 'invalid' | 'ours' | 'failed' | 'timeout' | 'again'
type Row = readonly [answer: FakeAnswer, means: Meaning]

const json = (status: number, body: unknown): FakeAnswer => ({ status, json: body })
const kling = (code: number, status = 200) => json(status, { code, message: 'm', request_id: 'r', data: null })
const minimax = (code: number) => json(200, { base_resp: { status_code: code, status_msg: 'm' } })
const byteplus = (status: number, code: string) => json(status, { error: { code, message: 'm' } })
const google = (status: number, word: string, message = 'm') =>
  json(status, { error: { code: status, message, status: word } })
const openai = (status: number, code: string | null, message = 'm') =>
  json(status, { error: { message, type: 't', param: null, code } })
const eleven = (status: number, word: string) => json(status, { detail: { status: word, message: 'm' } })

const CODES: readonly (readonly [card: FakeCard, model: string, rows: readonly Row[]])[] = [
  [
    klingFake,
    'kling/kling-v2-6',
    [
      ...[1000, 1001, 1002, 1003, 1004].map((code): Row => [kling(code, 401), 'ours']),
      ...[1100, 1101, 1102].map((code): Row => [kling(code, 429), 'ours']),
      ...[1200, 1201, 1202, 1203].map((code): Row => [kling(code, 400), 'invalid']),
      ...[1300, 1301].flatMap((code): Row[] => [
        [kling(code, 400), 'policy'],
        [kling(code), 'policy'],
      ]),
      ...[1302, 1303, 1304].map((code): Row => [kling(code, 429), 'again']),
      ...[5000, 5001, 5002].map((code, index): Row => [kling(code, [500, 503, 504][index]), 'failed']),
    ],
  ],
  [
    minimaxFake,
    'minimax/minimax-hailuo-02',
    [
      ...[1000, 1001, 1024, 1033].map((code): Row => [minimax(code), 'failed']),
      ...[1002, 1039, 1041].map((code): Row => [minimax(code), 'again']),
      ...[1004, 1008, 2049, 2056, 2067].map((code): Row => [minimax(code), 'ours']),
      ...[1026, 1027].map((code): Row => [minimax(code), 'policy']),
      ...[1042, 2013].map((code): Row => [minimax(code), 'invalid']),
    ],
  ],
  [
    byteplusFake,
    'byteplus/seedream-4-5-251128',
    [
      ...['', 'InputText', 'InputImage', 'OutputText', 'OutputImage', 'OutputVideo', 'InputAudio'].map(
        (what): Row => [byteplus(400, `${what}SensitiveContentDetected`), 'policy'],
      ),
      [byteplus(400, 'OutputImageSensitiveContentDetected.PolicyViolation'), 'policy'],
      [byteplus(400, 'InputImageSensitiveContentDetected.PrivacyInformation'), 'policy'],
      [byteplus(400, 'MissingParameter'), 'invalid'],
      [byteplus(400, 'InvalidParameter'), 'invalid'],
      [byteplus(401, 'AuthenticationError'), 'ours'],
      [byteplus(403, 'AccountOverdueError'), 'ours'],
      [byteplus(403, 'AccessDenied'), 'ours'],
      [byteplus(404, 'ModelNotOpen'), 'ours'],
      [byteplus(404, 'InvalidEndpointOrModel.NotFound'), 'ours'],
      [byteplus(429, 'RateLimitExceeded.EndpointRPM'), 'again'],
    ],
  ],
  [
    geminiFake,
    'vertexai/gemini-2.5-flash-image',
    [
      ...['SAFETY', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'IMAGE_SAFETY'].map(
        (blockReason): Row => [json(200, { promptFeedback: { blockReason } }), 'policy'],
      ),
      ...['IMAGE_SAFETY', 'IMAGE_PROHIBITED_CONTENT', 'PROHIBITED_CONTENT', 'SAFETY', 'RECITATION'].map(
        (finishReason): Row => [json(200, { candidates: [{ finishReason, content: {} }] }), 'policy'],
      ),
      [json(200, { candidates: [{ finishReason: 'NO_IMAGE', content: {} }] }), 'failed'],
      [google(400, 'INVALID_ARGUMENT'), 'invalid'],
      [google(400, 'INVALID_ARGUMENT', 'The prompt violates our usage guidelines and safety policies'), 'policy'],
      [google(403, 'PERMISSION_DENIED'), 'ours'],
      [google(429, 'RESOURCE_EXHAUSTED'), 'again'],
      [google(503, 'UNAVAILABLE'), 'failed'],
    ],
  ],
  [
    openaiFake,
    'openai/gpt-image-1',
    [
      [openai(400, 'moderation_blocked'), 'policy'],
      [openai(400, 'content_policy_violation'), 'policy'],
      [openai(400, null, 'Your request was rejected by our safety system'), 'policy'],
      [openai(400, 'invalid_value'), 'invalid'],
      [openai(401, 'invalid_api_key'), 'ours'],
      [openai(403, 'access_denied'), 'ours'],
      [openai(429, 'insufficient_quota'), 'ours'],
      [openai(429, 'rate_limit_exceeded'), 'again'],
      [openai(503, null), 'failed'],
    ],
  ],
  [
    elevenlabsFake,
    'elevenlabs/eleven_v3',
    [
      [eleven(401, 'invalid_api_key'), 'ours'],
      [eleven(401, 'quota_exceeded'), 'ours'],
      [eleven(400, 'max_character_limit_exceeded'), 'invalid'],
      [eleven(400, 'voice_not_found'), 'invalid'],
      [eleven(404, 'voice_not_found'), 'invalid'],
      [eleven(429, 'too_many_concurrent_requests'), 'again'],
      [eleven(429, 'system_busy'), 'again'],
    ],
  ],
  [
    bflFake,
    'bfl/flux-2-pro',
    [
      [json(400, { detail: 'bad' }), 'invalid'],
      [json(402, { detail: 'no credits' }), 'ours'],
      [json(403, { detail: 'no' }), 'ours'],
      [json(429, { detail: 'tasks' }), 'again'],
      [json(500, { detail: 'oops' }), 'failed'],
    ],
  ],
  [
    runwayFake,
    'runway/gen4_image',
    [
      [json(400, { error: 'bad' }), 'invalid'],
      [json(401, { error: 'no' }), 'ours'],
      [json(429, { error: 'slow' }), 'again'],
      [json(503, { error: 'down' }), 'failed'],
    ],
  ],
  [
    stabilityFake,
    'stability/stable-image-core',
    [
      [json(200, { image: 'eA==', finish_reason: 'CONTENT_FILTERED', seed: 1 }), 'policy'],
      [json(403, { id: 'x', name: 'content_moderation', errors: ['flagged'] }), 'policy'],
      [json(403, { id: 'x', name: 'permission_denied', errors: ['no'] }), 'ours'],
      ...[400, 413, 422].map((status): Row => [json(status, { id: 'x', name: 'bad', errors: ['e'] }), 'invalid']),
      [json(429, { id: 'x', name: 'rate_limit_exceeded', errors: ['e'] }), 'again'],
    ],
  ],
  [
    ideogramFake,
    'ideogram/ideogram-v3',
    [
      [json(422, { error: 'Prompt failed the safety checks' }), 'policy'],
      [json(422, { error: 'resolution is wrong' }), 'invalid'],
      [json(200, { created: 'x', data: [{ is_image_safe: false, url: '' }] }), 'policy'],
      [json(401, { error: 'no' }), 'ours'],
      [json(429, { error: 'in flight' }), 'again'],
    ],
  ],
  [
    recraftFake,
    'recraft/recraftv4',
    [
      [{ status: 401, body: 'request unauthorized', headers: { 'content-type': 'text/plain' } }, 'ours'],
      [{ status: 429, body: 'too many', headers: { 'content-type': 'text/plain' } }, 'again'],
      [json(400, { code: 'invalid', message: 'size' }), 'invalid'],
    ],
  ],
  [
    replicateFake,
    'replicate/flux-schnell',
    [
      [json(402, { title: 'Insufficient credit', detail: 'd', status: 402 }), 'ours'],
      [json(422, { title: 'Input validation failed', detail: 'd', status: 422 }), 'invalid'],
      [json(429, { detail: 'throttled', status: 429 }), 'again'],
    ],
  ],
  [
    xaiFake,
    'xai/grok-imagine-image',
    [
      [json(200, { block_reason: 'nudity', data: [] }), 'policy'],
      [json(200, { data: [] }), 'failed'],
      [json(400, { error: 'prompt too long' }), 'invalid'],
      [json(400, { code: 'x', error: 'bad' }), 'invalid'],
      [json(429, { error: { message: 'slow' } }), 'again'],
    ],
  ],
]

for (const [card, id, rows] of CODES) {
  describe(`${id} says`, () => {
    for (const [answer, means] of rows) {
      test(`${answer.status} ${JSON.stringify(answer.json ?? answer.body).slice(0, 90)}: ${means}`, async () => {
        await using fake = await startFakeProvider({
          ...card,
          isKnown: () => true,
          routes: [['POST', /.*/, () => answer]],
        })
        await using under = await openProviderUnderTest(fake)
        const outcome = await under.submit(id, (await shippedModel(id)).input.example ?? {})
        assert.equal(outcome.outcome, 'refused')
        const isTroubleOfOurs = under.logged.some((line) => line.startsWith('the provider refuses our account'))
        const { reason } = outcome.refusal
        const found = isTroubleOfOurs ? 'ours' : under.waits.length > 0 ? 'again' : reason
        assert.equal(found, means, outcome.refusal.message)
        // Only the two that are the caller's to mend are told as such.
        if (means === 'ours' || means === 'again') assert.equal(reason, 'failed')
      })
    }
  })
}
