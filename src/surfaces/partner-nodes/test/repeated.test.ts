/** A node's request says everything once, wherever it says it; and what is sent on is what was read. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { bflFake } from '../../../../test/support/providers/fake-providers/bfl.ts'
import { byteplusFake } from '../../../../test/support/providers/fake-providers/byteplus.ts'
import { openaiFake, recraftFake } from '../../../../test/support/providers/fake-providers/direct.ts'
import type { FakeCard } from '../../../../test/support/providers/fake-providers/fake-card.ts'
import { klingFake } from '../../../../test/support/providers/fake-providers/kling.ts'
import { type NodeService, startNodeService } from './node-service.ts'

const CARDS: readonly FakeCard[] = [bflFake, byteplusFake, klingFake, openaiFake, recraftFake]
const KLING = '/proxy/kling/v1/videos/text2video'
const TASKS = '/proxy/byteplus/api/v3/contents/generations/tasks'
const EDITS = '/proxy/openai/images/edits'
const BOUNDARY = 'the-line-between'

let service: NodeService
before(async () => {
  service = await startNodeService(CARDS)
})
after(() => service[Symbol.asyncDispose]())
beforeEach(() => {
  for (const card of CARDS) service.fakeOf(card).reset('success')
})

function sendText(path: string, body: string, contentType = 'application/json'): Promise<Response> {
  return fetch(service.test.url + path, {
    method: 'POST',
    headers: { 'x-api-key': service.key, 'content-type': contentType },
    body,
  })
}

type Part = readonly [head: string, content: string]

function sendForm(parts: readonly Part[], { before: preamble = '', behind = '' } = {}): Promise<Response> {
  const text = parts.map(
    ([head, content]) => `--${BOUNDARY}\r\nContent-Disposition: form-data; ${head}\r\n\r\n${content}\r\n`,
  )
  const body = `${preamble}${text.join('')}--${BOUNDARY}--\r\n${behind}`
  return sendText(EDITS, body, `multipart/form-data; boundary=${BOUNDARY}`)
}

function clip(text: string, fields: object = {}): string {
  return JSON.stringify({ model: 'seedance-1-0-pro-250528', content: [{ type: 'text', text }], ...fields })
}

const MODEL: Part = ['name="model"', 'dall-e-2']
const REFUSED: readonly [what: string, where: string, send: () => Promise<Response>][] = [
  ['a member twice', 'duration', () => sendText(KLING, '{"model_name":"kling-v2-1","duration":"10","duration":"5"}')],
  ['the model twice', 'model_name', () => sendText(KLING, '{"model_name":"kling-v3","model_name":"kling-v2-1"}')],
  ['a member in another case', 'Duration', () => sendText(KLING, '{"model_name":"kling-v2-1","Duration":"10"}')],
  [
    'the model in two cases',
    'Model_Name',
    () => sendText(KLING, '{"model_name":"kling-v2-1","Model_Name":"kling-v3"}'),
  ],
  ['another model than the path', 'model', () => sendText('/proxy/bfl/flux-pro-1.1-ultra/generate', '{"model":"x"}')],
  ['a parameter twice', 'id', () => service.send('GET', '/proxy/bfl/get_result?id=task-1&id=task-2')],
  ['an option twice', 'duration', () => sendText(TASKS, clip('a fox --duration 10 --duration 5'))],
  ['an option and its short name', 'duration', () => sendText(TASKS, clip('a fox --dur 10 --duration 5'))],
  ['an option besides a field', 'duration', () => sendText(TASKS, clip('a fox --duration 10', { duration: 5 }))],
  ['an option in another case', 'Duration', () => sendText(TASKS, clip('a fox --Duration 10'))],
  [
    'options in a text of any length',
    'content[].text',
    () => sendText(TASKS, clip(`--duration 10${' fox'.repeat(50_000)}`)),
  ],
  ['a member that no price counts', 'frames', () => sendText(TASKS, clip('a fox', { frames: 289 }))],
  ['such a member in another case', 'Frames', () => sendText(TASKS, clip('a fox', { Frames: 289 }))],
  ['an option that no price counts', 'frames', () => sendText(TASKS, clip('a fox --frames 289'))],
  ['a part of a form twice', 'n', () => sendForm([MODEL, ['name="n"', '9'], ['name="n"', '1']])],
  ['a part as text and as file', 'n', () => sendForm([MODEL, ['name="n"', '1'], ['name="n"; filename="n"', '9']])],
  ['a file for a number', 'n', () => sendForm([MODEL, ['name="n"; filename="1"', '9']])],
  ['a part in another case', 'N', () => sendForm([MODEL, ['name="N"', '9']])],
  ['a part as a list', 'n[]', () => sendForm([MODEL, ['name="n[]"', '9']])],
]
for (const [what, where, send] of REFUSED) {
  test(`${what} is refused by its name, and nothing is sent`, async () => {
    const answer = await send()
    const { error } = (await answer.json()) as { error: { type: string; message: string } }
    assert.deepEqual([answer.status, error.type], [422, 'invalid_fields'], error.message)
    assert.ok(error.message.includes(`${where}: `), error.message)
    for (const card of CARDS) assert.deepEqual(service.fakeOf(card).requests, [])
    assert.equal(await service.charged(), 0)
  })
}

test('a short name of an option costs as much as the long one', async () => {
  const fake = service.fakeOf(byteplusFake)
  fake.pendingPolls = 0
  const answer = await sendText(TASKS, clip('a fox --rs 1080p --dur 10 --seed 7'))
  const { id } = (await answer.json()) as { id: string }
  assert.equal((await service.send('GET', `${TASKS}/${id}`)).status, 200)
  assert.equal(await service.charged(), 1_220_000)
})

test('a form goes on as it was read: nothing around its parts, and no head that says more than we understood', async () => {
  const picture: Part = ['name="image[]"; filename="a.png"\r\nContent-Type: image/png', 'first']
  const parts: readonly Part[] = [
    MODEL,
    ['name="n"; name="m"\r\nContent-Transfer-Encoding: base64', '1'],
    ['name="prompt"\r\nContent-Type: text/plain; charset=utf-16', 'a hat'],
    picture,
    ['name="image[]"; filename="b.png"\r\nContent-Type: image/png', 'second'],
  ]
  const around = { before: 'n=9\r\n', behind: `--${BOUNDARY}\r\nContent-Disposition: form-data; name="n"\r\n\r\n9\r\n` }
  const answer = await sendForm(parts, around)
  assert.equal(answer.status, 200, await answer.text())
  assert.equal(await service.charged(), 20_000)
  const [sent] = service.fakeOf(openaiFake).requests
  const line = /boundary=(\S+)$/.exec(String(sent.headers['content-type']))?.[1] ?? ''
  const pieces = sent.raw.toString().split(`--${line}`)
  assert.deepEqual(pieces, [
    '',
    '\r\nContent-Disposition: form-data; name="model"\r\n\r\ndall-e-2\r\n',
    '\r\nContent-Disposition: form-data; name="n"\r\n\r\n1\r\n',
    '\r\nContent-Disposition: form-data; name="prompt"\r\n\r\na hat\r\n',
    '\r\nContent-Disposition: form-data; name="image[]"; filename="a.png"\r\nContent-Type: image/png\r\n\r\nfirst\r\n',
    '\r\nContent-Disposition: form-data; name="image[]"; filename="b.png"\r\nContent-Type: image/png\r\n\r\nsecond\r\n',
    '--\r\n',
  ])
})

test('an object in the place of a text costs as much as the dearest', async () => {
  const fields = { resolution: { toString: 1, valueOf: 1 }, duration: 2 }
  const answer = await sendText(TASKS, clip('a fox', fields))
  assert.equal(answer.status, 200, await answer.text())
})
