/** A declaration as the executor knows node classes. Its code is elsewhere: calls go to the threads of custom nodes. */
import { defineNode, type EngineNode } from '../node/define-node.ts'
import {
  anything,
  boolean,
  combo,
  float,
  type InputKind,
  image,
  int,
  mask,
  ofType,
  string,
  wideInt,
} from '../node/input-kinds.ts'
import { Interrupted } from '../node/node-error.ts'
import { audio } from '../nodes/audio/edit-audio.ts'
import { latent } from '../nodes/latents/latents.ts'
import type { FromThread } from '../threads/protocol.ts'
import type { InputDeclaration, NodeDeclaration } from './declaration.ts'
import type { ToNodeThread } from './describe-modules.ts'
import { createPrinter } from './load-modules.ts'
import type { EncodedPicture, RunContext } from './nodes-api.ts'
import { createPreviewLine } from './preview.ts'

const LARGEST_SEED = 2n ** 64n - 1n

const KINDS: Readonly<Record<InputDeclaration['kind'], (input: InputDeclaration) => InputKind<unknown>>> = {
  image: ({ options }) => image(options),
  mask: ({ options }) => mask(options),
  latent: ({ options }) => latent(options),
  audio: ({ options }) => ({ ...audio(), spec: ['AUDIO', options] }),
  int: ({ options }) => int(options),
  seed: ({ options }) => wideInt({ default: 0, min: 0, max: LARGEST_SEED, control_after_generate: true, ...options }),
  float: ({ options }) => float(options),
  string: ({ options }) => string(options),
  boolean: ({ options }) => boolean(options),
  choice: ({ options, choices }) => combo(choices, options),
  anything: ({ options }) => anything(options),
  type: ({ options, type }) => ofType(type, options),
}

function toKinds(inputs: readonly InputDeclaration[]): Record<string, InputKind<unknown>> {
  return Object.fromEntries(inputs.map((input) => [input.name, KINDS[input.kind](input)]))
}

export function toEngineNode(declaration: NodeDeclaration): EngineNode {
  const { classType, displayName, category, description, inputs, outputs, isOutputNode, isCached } = declaration
  const optional = inputs.filter((input) => input.isOptional)
  return defineNode({
    classType,
    displayName,
    category,
    description,
    style: 'schema',
    required: toKinds(inputs.filter((input) => !input.isOptional)),
    ...(optional.length > 0 && { optional: toKinds(optional) }),
    outputs: outputs.map(({ name, type }) => ({ name, type })),
    isOutputNode,
    cost: 'isolated',
    ...(!isCached && { changeValue: () => null }),
    run() {
      throw new Error(`${classType} runs in the threads of custom nodes only`)
    },
  })
}

// One call of a custom node inside its thread: what it is given to work with, and how it can end before it returns.

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
