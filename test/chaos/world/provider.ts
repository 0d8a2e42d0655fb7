/**
 * The server of a provider of models. `paint` makes one generation for each submit key, however often it is asked. `film` makes a new
 * one each time that it is asked, and counts how often that was for the same key: more than once must never happen.
 */
import { type HttpFake, readBody, startHttpFake } from '../../support/providers/http-fake.ts'

export interface ChaosProvider extends HttpFake {
  /** Generations by the submit key that asked for them. */
  generationsOf(key: string): readonly string[]
  keys(): readonly string[]
}

// A film is ready when it has been asked for so often.
const POLLS = 3

export async function openChaosProvider(): Promise<ChaosProvider> {
  const made = new Map<string, string[]>()
  const films = new Map<string, { readonly generation: string; readonly prompt: string; polls: number }>()
  let count = 0

  function make(key: string): string {
    const generation = `generation ${++count}`
    made.set(key, [...(made.get(key) ?? []), generation])
    return generation
  }

  const fake = await startHttpFake(async (request, response) => {
    const key = String(request.headers['x-submit-key'])
    const body = (await readBody(request)).toString()
    response.setHeader('content-type', 'application/json')
    if (request.url === '/paint') {
      const { prompt } = JSON.parse(body) as { prompt: string }
      response.end(JSON.stringify({ generation: made.get(key)?.[0] ?? make(key), prompt }))
    } else if (request.url === '/film') {
      const { prompt } = JSON.parse(body) as { prompt: string }
      const id = `film-${films.size + 1}`
      films.set(id, { generation: make(key), prompt, polls: 0 })
      response.end(JSON.stringify({ id }))
    } else {
      const film = films.get(String(request.url?.split('/').at(-1)))
      if (film === undefined) {
        response.statusCode = 404
        response.end('{"error": "no such film"}')
        return
      }
      film.polls += 1
      const { generation, prompt } = film
      response.end(JSON.stringify(film.polls >= POLLS ? { status: 'done', generation, prompt } : { status: 'busy' }))
    }
  })
  return { ...fake, generationsOf: (key) => made.get(key) ?? [], keys: () => [...made.keys()] }
}
