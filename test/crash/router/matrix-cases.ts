/**
 * Every way in which a model call can be cut off, for each kind of call. The shipped provider rules run against fakes that make a
 * new generation for every submit, so that only the records of the service keep it from paying twice. One provider lets us look
 * up a lost task by our own reference.
 */
export type CutShape = 'polled' | 'found again' | 'direct' | 'with own key' | 'queued' | 'queued with a picture'

/** `result`: the one generation, or the first. `unknown`: it exists and its name was lost; nobody pays, and the key says so. */
export type CutEnd = 'result' | 'unknown'

/** Where the process dies. The first five are held in the process itself, the others by what it talks to. */
export type CutStep =
  | 'before it is let in'
  | 'let in, not sent'
  | 'handle not stored'
  | 'handle stored'
  | 'finished, not settled'
  | 'settled, not answered'
  | 'its picture is fetched'
  | 'the provider has it'
  | 'while it is polled'
  | 'its result is copied'

export const CUTS: Readonly<Record<CutShape, Partial<Record<CutStep, CutEnd>>>> = {
  polled: {
    'before it is let in': 'result',
    'let in, not sent': 'result',
    'the provider has it': 'unknown',
    'handle not stored': 'unknown',
    'handle stored': 'result',
    'while it is polled': 'result',
    'its result is copied': 'result',
    'finished, not settled': 'result',
    'settled, not answered': 'result',
  },
  'found again': {
    'the provider has it': 'result',
    'handle not stored': 'result',
  },
  direct: {
    'before it is let in': 'result',
    'let in, not sent': 'result',
    'its picture is fetched': 'result',
    'the provider has it': 'unknown',
    'finished, not settled': 'unknown',
    'settled, not answered': 'result',
  },
  'with own key': {
    'let in, not sent': 'result',
    'the provider has it': 'unknown',
    'while it is polled': 'result',
    'finished, not settled': 'result',
    'settled, not answered': 'result',
  },
  queued: {
    'the provider has it': 'unknown',
    'while it is polled': 'result',
    'its result is copied': 'result',
  },
  'queued with a picture': { 'its picture is fetched': 'result' },
}

export interface Cut {
  /** Also the Idempotency-Key, and what the provider sees as the prompt. */
  readonly name: string
  readonly shape: CutShape
  readonly step: CutStep
  readonly end: CutEnd
}

export const ALL_CUTS: readonly Cut[] = Object.entries(CUTS).flatMap(([shape, steps]) =>
  Object.entries(steps).map(([step, end]) => ({
    name: `${shape}: ${step}`,
    shape: shape as CutShape,
    step: step as CutStep,
    end,
  })),
)

export function modelOf({ shape }: Cut): string {
  if (shape === 'found again') return 'kling/kling-v2-6'
  return shape === 'direct' || shape === 'queued with a picture' ? 'openai/gpt-image-1' : 'bfl/flux-2-pro'
}
