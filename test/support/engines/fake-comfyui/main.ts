/**
 * The fake server as a process of its own: `main.ts --port N [--options JSON] [--log FILE] [--comfy-api-base URL]`. It ends with SIGTERM, and by kill -9.
 * The log file has one line for every prompt that begins or ends, written before any client can know. It outlives the process.
 */
import { appendFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { startFakeComfy } from './fake-comfyui.ts'
import type { ExecutionNews, FakeOptions } from './fake-options.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    options: { type: 'string', default: '{}' },
    log: { type: 'string' },
    'comfy-api-base': { type: 'string' },
  },
})
const options = JSON.parse(values.options) as FakeOptions
const { log } = values
const onExecution = (news: ExecutionNews) =>
  appendFileSync(log as string, `${JSON.stringify({ ...news, at: Date.now() })}\n`)
const fake = await startFakeComfy({
  ...options,
  port: Number(values.port),
  onPrint: (line) => console.log(line),
  ...(log !== undefined && { onExecution }),
})
console.log(`partner nodes call ${values['comfy-api-base'] ?? 'outside'}`)
console.log(`To see the GUI go to: ${fake.url.href}`)
process.on('SIGTERM', () => fake[Symbol.asyncDispose]())
