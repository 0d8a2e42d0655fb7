/** What a run has made, by the names of the outputs of its version. */
import type { Job, Output } from '../jobs/job.ts'
import type { EndpointOutput } from './endpoint.ts'

interface RunResult {
  readonly name: string
  readonly made: readonly Output[]
}

export function toResults({ outputs }: Pick<Job, 'outputs'>, named: readonly EndpointOutput[]): RunResult[] {
  return named.map(({ name, nodeId }) => ({ name, made: outputs.filter((output) => output.nodeId === nodeId) }))
}
