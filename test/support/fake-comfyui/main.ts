/** The fake server as a process of its own: `main.ts --port N [--options JSON]`. It ends with SIGTERM, and by kill -9. */
import { parseArgs } from 'node:util'
import { type FakeOptions, startFakeComfy } from './fake-comfyui.ts'

const { values } = parseArgs({
  options: { port: { type: 'string', default: '0' }, options: { type: 'string', default: '{}' } },
})
const options = JSON.parse(values.options) as FakeOptions
const fake = await startFakeComfy({ ...options, port: Number(values.port), onPrint: (line) => console.log(line) })
console.log(`To see the GUI go to: ${fake.url.href}`)
process.on('SIGTERM', () => fake[Symbol.asyncDispose]())
