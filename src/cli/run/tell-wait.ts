/**
 * Says why a job that waits for longer than a moment waits, where that is something to act on: no engine that is there can run it, or
 * somebody stopped the queue. The service's own answer for its console knows; another implementation of the Jobs API does not have it.
 */
import { sleep } from '../../../lib/waiting/sleep.ts'
import { RefusedError, type RunClient, UnreachableError } from '../server/client.ts'
import { type JobView, toFields } from '../server/job-answers.ts'

const FIRST_MS = 2000
const THEN_EVERY_MS = 10_000

const REASONS: Readonly<Record<string, string>> = {
  paused: 'nothing is taken from this queue just now',
  held: 'it is held until its time',
  no_engine: 'no engine can run it',
  engines_away: 'the engines that can run it are away',
}

interface TellingOptions {
  readonly display: { say(text: string): void }
  /** Ends it: the job is over, or nobody follows it any more. */
  readonly signal: AbortSignal
}

/** Ends by itself once the job no longer waits. */
export async function tellWait(client: RunClient, job: JobView, { display, signal }: TellingOptions): Promise<void> {
  let said = ''
  for (let delayMs = FIRST_MS; ; delayMs = THEN_EVERY_MS) {
    await sleep(delayMs, signal)
    if (signal.aborted) return
    const answer = await readWait(client, job.id, signal)
    if (answer === 'over') return
    const text = answer === 'unknown' ? '' : describeWait(answer)
    if (text !== '' && text !== said) display.say(text)
    said = text
  }
}

/** `over`: it waits no longer, or this server never tells. `unknown`: it could not be asked just now. */
async function readWait(
  client: RunClient,
  id: string,
  signal: AbortSignal,
): Promise<Record<string, unknown> | 'over' | 'unknown'> {
  try {
    const answer = toFields(await client.read(`${client.baseUrl}/console/v1/jobs/${encodeURIComponent(id)}`, signal))
    return answer['status'] === 'queued' ? { ...toFields(answer['wait']) } : 'over'
  } catch (error) {
    if (signal.aborted) return 'over'
    return error instanceof UnreachableError || (error instanceof RefusedError && error.status >= 500)
      ? 'unknown'
      : 'over'
  }
}

function describeWait(wait: Readonly<Record<string, unknown>>): string {
  const reason = REASONS[String(wait['reason'])]
  if (reason === undefined) return ''
  const engines = Array.isArray(wait['engines']) ? wait['engines'].map(toFields) : []
  const pauses = Array.isArray(wait['pauses']) ? wait['pauses'].map(toFields) : []
  const details = [
    ...pauses.flatMap(({ reason: why }) => (typeof why === 'string' ? [why] : [])),
    ...engines.flatMap(({ id, why_not: why }) => (typeof why === 'string' ? [`${id} ${why}`] : [])),
  ]
  return [`waiting: ${reason}`, ...details.map((detail) => `  ${detail}`)].join('\n')
}
