/** Counters and histograms of one registry. */
import { Counter, Histogram, type Registry } from 'prom-client'

interface Scale<Label extends string> {
  /** Upper bounds in seconds. */
  readonly buckets: readonly number[]
  readonly labelNames?: readonly Label[]
}

export function createSeries(registry: Registry) {
  const registers = [registry]
  return {
    counter: <Label extends string = never>(name: string, help: string, labelNames: readonly Label[] = []) =>
      new Counter<Label>({ name, help, labelNames, registers }),
    histogram: <Label extends string = never>(name: string, help: string, { buckets, labelNames = [] }: Scale<Label>) =>
      new Histogram<Label>({ name, help, labelNames, buckets: [...buckets], registers }),
  }
}
