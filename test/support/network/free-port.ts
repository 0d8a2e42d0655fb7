/**
 * A port for a program that is told its port before it starts, and may start again at the same one. It lies below the range from
 * which systems hand out ports by themselves: between the look and the start nobody else is given it.
 */
import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

const FIRST = 20_000
const END = 32_000

export async function findFreePort(): Promise<number> {
  while (true) {
    const port = randomInt(FIRST, END)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const isListening = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (isListening) await new Promise((resolve) => probe.close(resolve))
  return isListening
}
