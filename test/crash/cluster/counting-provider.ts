/** A provider that makes one generation for each submit key, however often it is asked, and counts how often that was. */
import { type HttpFake, readBody, startHttpFake } from '../../support/providers/http-fake.ts'

export interface CountingProvider extends HttpFake {
  /** Submit keys with the generation that each got. */
  readonly made: ReadonlyMap<string, number>
}

export async function openCountingProvider(): Promise<CountingProvider> {
  const made = new Map<string, number>()
  const fake = await startHttpFake(async (request, response) => {
    await readBody(request)
    const key = String(request.headers['x-submit-key'])
    if (!made.has(key)) made.set(key, made.size + 1)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ generation: `generation ${made.get(key)}` }))
  })
  return { ...fake, made }
}
