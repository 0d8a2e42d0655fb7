/** Small client steps that several scenarios share. */
import { TRIVIAL_WORKFLOW } from './workflows.ts'

export interface BenchJob {
  readonly id: string
  readonly status: string
}

export async function submitJob(baseUrl: string, workflow: object = TRIVIAL_WORKFLOW): Promise<BenchJob> {
  const response = await fetch(`${baseUrl}/api/v2/jobs`, { method: 'POST', body: JSON.stringify({ workflow }) })
  if (response.status !== 201) throw new Error(`submit answered ${response.status}: ${await response.text()}`)
  return (await response.json()) as BenchJob
}

/** Follows the event stream to its end, which is the terminal status. */
export async function waitForEnd(baseUrl: string, jobId: string): Promise<void> {
  const response = await fetch(`${baseUrl}/api/v2/jobs/${jobId}/events`)
  await response.text()
}

export async function finishedJob(baseUrl: string): Promise<BenchJob> {
  const job = await submitJob(baseUrl)
  await waitForEnd(baseUrl, job.id)
  const finished = (await (await fetch(`${baseUrl}/api/v2/jobs/${job.id}`)).json()) as BenchJob
  if (finished.status !== 'succeeded') throw new Error(`the job ended ${finished.status}`)
  return finished
}
