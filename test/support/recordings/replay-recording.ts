/**
 * Repeats a recorded session against a running service: uploads the files that the graph names, opens the socket, sends what the
 * client sent, submits, makes the HTTP exchanges that were recorded during the run, and waits for its end.
 */
import { readFileSync } from 'node:fs'
import { WebSocket } from 'ws'
import {
  type JsonObject,
  type JsonValue,
  parseLosslessJson,
  stringifyLosslessJson,
} from '../../../lib/json/lossless-json.ts'
import { type Frame, isText, openSocket, type TestSocket } from '../clients/test-socket.ts'
import { waitUntil } from '../wait-until.ts'
import { type Exchange, promptIdOf, RECORDINGS, type RecordedRun } from './recorded-runs.ts'

export interface Answer {
  readonly status: number
  readonly body: JsonValue
}

export interface Replay {
  readonly post: Answer
  /** Ids of the recording and what they are called here. */
  readonly ids: ReadonlyMap<string, string>
  readonly during: Readonly<Record<string, Answer>>
  readonly frames: readonly Frame[]
  readonly history: JsonObject
  readonly job: JsonObject
}

export async function replay(url: string, run: RecordedRun): Promise<Replay> {
  await uploadInputs(url, run)
  const socket = run.websocket === null ? null : await open(url, run.websocket)
  const ids = new Map<string, string>()
  const post = await send(url, run.post, ids)
  const id = ids.get(promptIdOf(run.post)) ?? ''
  const during: Record<string, Answer> = {}
  if (socket !== null && Object.keys(run.during).length > 0) await socket.until((frame) => isText(frame, 'progress'))
  for (const [name, exchange] of Object.entries(run.during)) during[name] = await send(url, exchange, ids)
  await socket?.until((frame) => isText(frame, 'executing') && frame.data['node'] === null)
  const history = await waitForHistory(url, id)
  const job = (await ask(url, `/api/jobs/${id}`)).body as JsonObject
  const frames = socket === null ? [] : [...socket.frames]
  await socket?.close()
  return { post, ids, during, frames, history, job }
}

async function open(url: string, { path, sent }: NonNullable<RecordedRun['websocket']>): Promise<TestSocket> {
  const socket = await openSocket(new WebSocket(`${url.replace('http', 'ws')}${path}`, { perMessageDeflate: false }))
  await socket.untilCount(1)
  for (const message of sent) socket.ws.send(stringifyLosslessJson(message))
  if (sent.length > 0) await socket.until((frame) => isText(frame, 'feature_flags'))
  return socket
}

/** Ids that the recorded server gave out are replaced by those that were given out here. */
export async function send(url: string, { request, response }: Exchange, ids: Map<string, string>): Promise<Answer> {
  const rename = (text: string) => [...ids].reduce((all, [from, to]) => all.replaceAll(from, to), text)
  const text = request.json === undefined ? request.raw : stringifyLosslessJson(request.json)
  const answer = await ask(url, rename(request.path), {
    method: request.method,
    headers: { 'Content-Type': 'application/json', ...request.headers },
    ...(text !== undefined && { body: rename(text) }),
  })
  const given = (answer.body as JsonObject | null)?.['prompt_id']
  const recorded = (response.body as JsonObject | null)?.['prompt_id']
  if (typeof given === 'string' && typeof recorded === 'string') ids.set(recorded, given)
  return answer
}

export async function ask(url: string, path: string, init: RequestInit = {}): Promise<Answer> {
  const answer = await fetch(`${url}${path}`, { redirect: 'manual', ...init })
  return { status: answer.status, body: parseLosslessJson(await answer.text()) }
}

/** The socket tells the end; without one the history does. */
export async function waitForHistory(url: string, id: string): Promise<JsonObject> {
  return waitUntil(async () => {
    const history = (await ask(url, `/history/${id}`)).body as JsonObject
    return Object.hasOwn(history, id) ? history : null
  })
}

async function uploadInputs(url: string, run: RecordedRun): Promise<void> {
  const { prompt } = run.post.request.json as { prompt: Record<string, { class_type: string; inputs: JsonObject }> }
  for (const { class_type: classType, inputs } of Object.values(prompt)) {
    if (classType === 'LoadImage' && typeof inputs['image'] === 'string') await upload(url, inputs['image'])
  }
}

export async function upload(url: string, name: string): Promise<void> {
  const form = new FormData()
  form.set('image', new Blob([readFileSync(`${RECORDINGS}inputs/${name}`)]), name)
  form.set('overwrite', 'true')
  const answer = await fetch(`${url}/upload/image`, { method: 'POST', body: form })
  if (answer.status !== 200) throw new Error(`the upload of ${name} was answered with ${answer.status}`)
}
