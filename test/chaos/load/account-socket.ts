/**
 * The v1 socket of one account, which hears of all its jobs. It is opened again, at any node, when it breaks or when its pings are not
 * answered. Whoever was connected the whole time must have been told how a prompt ended; whoever was not may ask.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { type Client, TERMINAL } from './client.ts'

export interface AccountSocket {
  isOpen(): boolean
  /** Resolves when the job has ended: by the socket's word, or, after a break, by asking. */
  hear(id: string, ask: () => Promise<{ readonly status: string } | null>): Promise<void>
  close(): void
}

type Word = 'succeeded' | 'failed' | 'canceled'

const WORDS: Readonly<Record<string, Word>> = {
  execution_success: 'succeeded',
  execution_error: 'failed',
  execution_interrupted: 'canceled',
}
const PING_MS = 5000
const SILENCE_MS = 20_000
const RETRY_MS = 500
const LOOK_EVERY_MS = 500
// Whoever hears nothing asks now and then: a socket need not tell of a prompt that was taken out of the queue.
const ASK_EVERY_MS = 5000
// A job that has ended by all that can be read must be told to a socket that is open: at the latest by the next look of its node.
const PATIENCE_MS = 60_000

export function openAccountSocket(client: Client): AccountSocket {
  const heard = new Map<string, Word>()
  let socket: WebSocket | null = null
  /** Counts connections. */
  let life = 0
  let isClosed = false

  function open(): void {
    if (isClosed) return
    const { host } = new URL(client.front())
    const opened = new WebSocket(`ws://${host}/ws?clientId=chaos&token=${client.account.key}`, {
      handshakeTimeout: SILENCE_MS,
    })
    let lastMs = performance.now()
    const pings = setInterval(() => {
      if (performance.now() - lastMs > SILENCE_MS) opened.terminate()
      else if (opened.readyState === WebSocket.OPEN) opened.ping()
    }, PING_MS)
    opened.on('open', () => {
      socket = opened
      life += 1
    })
    opened.on('pong', () => {
      lastMs = performance.now()
    })
    opened.on('message', (data: Buffer, isBinary) => {
      lastMs = performance.now()
      if (isBinary) return
      const { type, data: body } = JSON.parse(String(data)) as { type: string; data: { prompt_id?: string } }
      const word = WORDS[type]
      if (word !== undefined && body.prompt_id !== undefined) note(body.prompt_id, word)
    })
    opened.on('error', () => {})
    opened.on('close', () => {
      clearInterval(pings)
      if (socket === opened) {
        socket = null
        life += 1
      }
      setTimeout(open, RETRY_MS)
    })
  }

  function note(id: string, word: Word): void {
    const before = heard.get(id)
    if (before !== undefined && before !== word)
      client.flaw('stream', `the socket told that job ${id} ${before}, then that it ${word}`, id)
    heard.set(id, word)
  }

  async function hear(id: string, ask: () => Promise<{ readonly status: string } | null>): Promise<void> {
    const lifeThen = life
    let endedAtMs: number | null = null
    let askedAtMs = performance.now()
    for (;;) {
      await pause(LOOK_EVERY_MS)
      const word = heard.get(id)
      const isQuiet = word === undefined && life === lifeThen
      if (isQuiet && performance.now() - askedAtMs < ASK_EVERY_MS) continue
      askedAtMs = performance.now()
      const job = isQuiet && endedAtMs !== null ? null : await ask()
      const isEnded = job !== null && TERMINAL.has(job.status)
      if (word !== undefined && isEnded) {
        client.tell({ what: 'watched', id, by: 'socket' })
        if (word !== job.status)
          client.flaw('stream', `the socket told that job ${id} ${word}, and it ${job.status}`, id)
        heard.delete(id)
        return
      }
      // A prompt that is taken out of the queue is not told, as ComfyUI does not.
      if (isEnded && (life !== lifeThen || job.status === 'canceled'))
        return client.tell({ what: 'watched', id, by: 'polls' })
      if (isEnded) endedAtMs ??= performance.now()
      if (life !== lifeThen) endedAtMs = null
      if (endedAtMs !== null && performance.now() - endedAtMs > PATIENCE_MS)
        return client.flaw('stream', `a socket that was open all the time was not told of the end of job ${id}`, id)
    }
  }

  open()
  return {
    isOpen: () => socket !== null,
    hear,
    close() {
      isClosed = true
      socket?.terminate()
    },
  }
}
