/** The console's API as a caller with curl uses it; every answer is held against the contract. */
import assert from 'node:assert/strict'
import { waitUntil } from '../wait-until.ts'
import { type Answer, call } from './call.ts'
import { openSpecChecks } from './check-against-spec.ts'

export const { checkAgainstSpec, checkAgainstSchema } = openSpecChecks('console.openapi.json')

export interface ConsoleClient {
  /** `template`: the path of the contract; `path`: with its parameters. */
  ask(method: string, template: string, path?: string, body?: unknown): Promise<Answer>
  submit(workflow: object, more?: object): Promise<string>
  untilStatus(jobId: string, ...statuses: readonly string[]): Promise<void>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into it freely
  workflowOf(jobId: string): Promise<any>
}

export function createConsoleClient(url: string, key: string | null = null): ConsoleClient {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    ...(key !== null && { authorization: `Bearer ${key}` }),
  }
  return {
    async ask(method, template, path = template, body) {
      const text = body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body)
      const answer = await call(url, `/console/v1${path}`, { method, headers, body: text })
      if (answer.status >= 400) checkAgainstSchema('Error', answer.json)
      else checkAgainstSpec(method, `/console/v1${template}`, answer.status, answer.json)
      return answer
    },
    async submit(workflow, more = {}) {
      const body = JSON.stringify({ workflow, ...more })
      const answer = await call(url, '/api/v2/jobs', { method: 'POST', headers, body })
      assert.equal(answer.status, 201, answer.text)
      return answer.json.id as string
    },
    async workflowOf(jobId) {
      return (await call(url, `/api/v2/jobs/${jobId}/workflow`, { headers })).json.workflow
    },
    async untilStatus(jobId, ...statuses) {
      await waitUntil(async () =>
        statuses.includes((await call(url, `/api/v2/jobs/${jobId}`, { headers })).json.status),
      )
    },
  }
}
