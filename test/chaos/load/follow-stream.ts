/**
 * Follows a job over its event stream to the end. A stream that breaks, or says nothing for longer than the official client waits, is
 * opened again at any node. What it tells must be in order, and its last word must be the job's end.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { type Client, TERMINAL } from './client.ts'

const SILENCE_MS = 45_000
const RETRY_MS = 250
const GIVE_UP_MS = 420_000

interface Frame {
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into frames freely
  readonly data: any
}

export async function followStream(client: Client, url: string, id: string): Promise<void> {
  const giveUpAt = performance.now() + GIVE_UP_MS
  while (performance.now() < giveUpAt) {
    const end = await readOnce(client, url, id)
    if (end !== null) {
      client.tell({ what: 'watched', id, by: 'stream' })
      return await compare(client, url, id, end)
    }
    await pause(RETRY_MS)
  }
  client.flaw('stream', `no stream of job ${id} came to an end`, id)
}

/** The terminal status that the stream told; null when it broke before. */
async function readOnce(client: Client, url: string, id: string): Promise<Frame['data'] | null> {
  const abort = new AbortController()
  const silence = setTimeout(() => abort.abort(), SILENCE_MS)
  let end: Frame['data'] | null = null
  let progress = 0
  try {
    const response = await fetch(`${client.front()}${url}/events`, {
      headers: client.credentials(),
      signal: abort.signal,
    })
    if (response.status === 404) client.flaw('lost', `the stream of job ${id} answers 404`, id)
    if (response.status !== 200 || response.body === null) {
      await response.arrayBuffer()
      return null
    }
    for await (const frame of readFrames(response.body, () => silence.refresh())) {
      if (end !== null) client.flaw('stream', `the stream of job ${id} goes on after its end: ${frame.event}`, id)
      if (frame.event === 'progress') {
        if (frame.data.value < progress) client.flaw('stream', `the progress of job ${id} falls`, id)
        progress = frame.data.value
      }
      if (frame.event === 'status' && TERMINAL.has(frame.data.status)) end = frame.data
    }
  } catch {
    // It broke.
  } finally {
    clearTimeout(silence)
    abort.abort()
  }
  return end
}

/** The stream's last word against the record. */
async function compare(client: Client, url: string, id: string, end: Frame['data']): Promise<void> {
  const { status, json } = await client.ask(url)
  if (status !== 200) return
  const hashes = (job: { outputs: readonly { hash: string }[] }) => job.outputs.map(({ hash }) => hash).join()
  if (json.status !== end.status || hashes(json) !== hashes(end))
    client.flaw('stream', `the stream of job ${id} ended with ${end.status}, and the job is ${json.status}`, id)
}

async function* readFrames(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<Frame> {
  const decoder = new TextDecoder()
  let text = ''
  for await (const bytes of body) {
    onBytes()
    text += decoder.decode(bytes, { stream: true })
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const match = /^event: (\w+)\ndata: (.*)$/.exec(text.slice(0, end))
      text = text.slice(end + 2)
      if (match !== null) yield { event: match[1] ?? '', data: JSON.parse(match[2] ?? '') }
    }
  }
}
