/** One call of a custom node inside its thread: what it is given to work with, and how it can end before it returns. */

import { Interrupted } from '../node/node-error.ts'
import type { FromThread } from '../threads/protocol.ts'
import type { EncodedPicture, RunContext } from './nodes-api.ts'
import { createPreviewLine } from './preview.ts'
import { createPrinter } from './printer.ts'
import type { ToNodeThread } from './protocol.ts'

export interface NodeCall {
  readonly context: RunContext
  print(text: string): void
  isCancelled(): boolean
  /** Aborts the node's signal. */
  cancel(): void
  /** An error that the node's code left to nobody. */
  fail(error: unknown): void
  /** Whether there was one: the code is then in a state that nobody knows. */
  isBroken(): boolean
  refuseStray(): void
  /** What `run` gave, or the first error that was left to nobody. */
  settle(result: unknown): Promise<unknown>
  previewsDrained(): Promise<void>
  close(): void
}

// A loop may report every row: one report per screen refresh is enough.
const PROGRESS_EVERY_MS = 16

export function createCall(
  { call: { nodeId }, cancelFlag }: Extract<ToNodeThread, { type: 'call' }>,
  post: (message: FromThread) => void,
): NodeCall {
  const abort = new AbortController()
  const stray = Promise.withResolvers<never>()
  // Most calls never look at it.
  stray.promise.catch(() => {})
  let strayError: { readonly error: unknown } | null = null
  let progressAt = Number.NEGATIVE_INFINITY
  const printer = createPrinter((text) => post({ type: 'log', text }))
  let step: { readonly value: number; readonly max: number } | null = null
  const previews = createPreviewLine((picture) => {
    if (step === null) post({ type: 'preview', ...picture })
    else postStep(picture)
  })
  const isCancelled = () => Atomics.load(cancelFlag, 0) !== 0

  /** A picture that is shown right after a step belongs to it, and both travel together. */
  function postStep(picture?: EncodedPicture): void {
    if (step !== null) post({ type: 'progress', ...step, ...(picture !== undefined && { also: { picture } }) })
    step = null
  }

  function checkpoint(): void {
    if (isCancelled()) throw new Interrupted()
  }

  function progress(value: number, max: number): void {
    checkpoint()
    if (!Number.isFinite(value) || !Number.isFinite(max) || max <= 0) {
      throw new TypeError(`progress: ${value} of ${max} makes no sense; give a step and how many there are`)
    }
    const now = performance.now()
    if (value < max && now - progressAt < PROGRESS_EVERY_MS) return
    progressAt = now
    postStep()
    step = { value: Math.max(0, Math.min(value, max)), max }
    queueMicrotask(postStep)
  }

  return {
    context: {
      signal: abort.signal,
      nodeId,
      checkpoint,
      progress,
      preview: previews.show,
      log: (text) => printer.print(`${text}\n`),
    },
    print: printer.print,
    isCancelled,
    cancel: () => abort.abort(new Interrupted()),
    fail(error) {
      strayError ??= { error }
      stray.reject(error)
    },
    isBroken: () => strayError !== null,
    refuseStray() {
      if (strayError !== null) throw strayError.error
    },
    settle: (result) => Promise.race([result, stray.promise]),
    previewsDrained: previews.drained,
    close() {
      postStep()
      printer.close()
    },
  }
}
