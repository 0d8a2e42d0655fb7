/** Which traces are reported, by the names that OpenTelemetry has for the rules (OTEL_TRACES_SAMPLER). */
import type { Sampler } from './otlp-tracer.ts'

export type SamplerName = 'always_on' | 'always_off' | 'traceidratio' | ParentBased
type ParentBased = 'parentbased_always_on' | 'parentbased_always_off' | 'parentbased_traceidratio'

const ALWAYS: Sampler = () => true
const NEVER: Sampler = () => false

export function createSampler(name: SamplerName, ratio: number): Sampler {
  const byName: Record<SamplerName, () => Sampler> = {
    always_on: () => ALWAYS,
    always_off: () => NEVER,
    traceidratio: () => byRatio(ratio),
    parentbased_always_on: () => afterParent(ALWAYS),
    parentbased_always_off: () => afterParent(NEVER),
    parentbased_traceidratio: () => afterParent(byRatio(ratio)),
  }
  return byName[name]()
}

/** The caller has decided already, if there is one. */
function afterParent(atRoot: Sampler): Sampler {
  return (traceId, parent) => parent?.isSampled ?? atRoot(traceId, parent)
}

const RANGE = 2 ** 32

/** The same decision in every process: it follows from the last digits of the id, which are random in all ways to make one. */
function byRatio(ratio: number): Sampler {
  const bound = Math.round(ratio * RANGE)
  return (traceId) => Number.parseInt(traceId.slice(-8), 16) < bound
}
