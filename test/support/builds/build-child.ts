/** Builds in a process of its own that a test kills: `<folder> <json of a definition> [origin…]`; says each line of the log. */
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { Readable } from 'node:stream'
import { openBuilder } from '../../../src/adapters/builders/open-builder.ts'
import type { BuildDefinition } from '../../../src/domain/environments/definition.ts'
import { benchOptions, CPU } from './bench.ts'

const [folder = '', text = '', ...origins] = process.argv.slice(2)
const places = { folder, wheels: path.join(folder, 'wheels'), comfyui: path.join(folder, 'comfyui') }
const options = benchOptions(places, { origins })
await using builder = await openBuilder(options)
await builder.build({
  releaseId: 'release-1',
  definition: JSON.parse(text) as BuildDefinition,
  target: CPU,
  lock: null,
  openBlob: async (id) => Readable.from([readFileSync(path.join(folder, id))]),
  note: async () => {},
  say: (line) => void process.stdout.write(`${line}\n`),
  signal: new AbortController().signal,
})
process.stdout.write('built\n')
