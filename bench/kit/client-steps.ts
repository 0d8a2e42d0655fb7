/** Small client steps that several scenarios share. */
import { TRIVIAL_WORKFLOW } from './workflows.ts'

export interface BenchJob {
  readonly id: string
  readonly status: string
}

type Headers = Readonly<Record<string, string>>

export async function submitJob(
  baseUrl: string,
  workflow: object = TRIVIAL_WORKFLOW,
  headers: Headers = {},
): Promise<BenchJob> {
  const body = JSON.stringify({ workflow })
  const response = await fetch(`${baseUrl}/api/v2/jobs`, { method: 'POST', body, headers })
  if (response.status !== 201) throw new Error(`submit answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as BenchJob
}

/** Reads the event stream to its end, which comes after the terminal status. */
export async function waitForEnd(baseUrl: string, jobId: string, headers: Headers = {}): Promise<void> {
  const response = await fetch(`${baseUrl}/api/v2/jobs/${jobId}/events`, { headers })
  await response.text()
}

export async function finishedJob(baseUrl: string, headers: Headers = {}): Promise<BenchJob> {
  const job = await submitJob(baseUrl, TRIVIAL_WORKFLOW, headers)
  await waitForEnd(baseUrl, job.id, headers)
  const finished = (await (await fetch(`${baseUrl}/api/v2/jobs/${job.id}`, { headers })).json()) as BenchJob
  if (finished.status !== 'succeeded') throw new Error(`the job ended ${finished.status}`)
  return finished
}
