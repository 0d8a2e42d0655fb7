/** That the table of mutations still fits the sources. Whether tests notice them takes long: `npm run test:mutations`. */
import assert from 'node:assert/strict'
import { existsSync, globSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { MUTATIONS } from './mutations.ts'

const project = fileURLToPath(new URL('../..', import.meta.url))

function textsOf(place: string): string[] {
  const where = path.join(project, place)
  const files = statSync(where).isDirectory() ? globSync(`${where}/**/*.ts`) : [where]
  return files.map((file) => readFileSync(file, 'utf8'))
}

test('every mutation finds the text that it changes, and the tests that must notice it', () => {
  const stale = MUTATIONS.filter(
    ({ in: place, find, tests }) =>
      !existsSync(path.join(project, place)) ||
      !textsOf(place).some((text) => text.includes(find)) ||
      !tests.every((file) => existsSync(path.join(project, file))),
  )
  assert.deepEqual(
    stale.map(({ in: place, fault }) => `${place}: ${fault}`),
    [],
  )
})
