import type { LogLine } from '../../../domain/jobs/run/record/log-lines.ts'

export function toLineView({ n, at, nodeId, text }: LogLine) {
  return { n, at: at?.toISOString() ?? null, node: nodeId, text }
}
