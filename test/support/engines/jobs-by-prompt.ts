import { promptIdOf, readPromptId } from '../../../src/adapters/engines/comfyui/run/comfy-prompt.ts'

// Prompts of one job begin with the same digits.
const JOB_DIGITS = 13

interface AttemptAt {
  readonly jobId: string
  readonly attempt: number
  readonly round: number
}

/** Which attempt at which of the jobs a prompt on an engine was; null: at none of them. */
export function attemptsByPrompt(jobIds: Iterable<string>): (promptId: string) => AttemptAt | null {
  const jobs = new Map<string, string>()
  for (const jobId of jobIds)
    jobs.set(promptIdOf({ jobId, attempt: 1, round: 0, claimId: '' }).slice(0, JOB_DIGITS), jobId)
  return (promptId) => {
    const jobId = jobs.get(promptId.slice(0, JOB_DIGITS))
    const place = jobId === undefined ? null : readPromptId(promptId, jobId)
    return jobId === undefined || place === null ? null : { jobId, ...place }
  }
}
