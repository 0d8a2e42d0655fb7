/**
 * Peers that this machine has, by paths in the environment. Nothing is installed here: each is one command of its own project.
 *
 *   BENCH_PORTKEY      build/start-server.js of the package @portkey-ai/gateway
 *   BENCH_LITELLM      the command litellm, with its proxy
 *   BENCH_COMFY_PROXY  the command comfy-api-proxy
 *   BENCH_COMFYUI      the address of a ComfyUI server; left out: one without computation
 */
import { existsSync } from 'node:fs'

export type PeerName = 'BENCH_PORTKEY' | 'BENCH_LITELLM' | 'BENCH_COMFY_PROXY'

/** null: it is not there, which is said. */
export function findPeer(variable: PeerName): string | null {
  const path = process.env[variable]
  if (path !== undefined && existsSync(path)) return path
  console.error(`  ${variable} ${path === undefined ? 'is not set' : 'names nothing'}: this peer is left out`)
  return null
}

export function findComfyUrl(): string | null {
  return process.env['BENCH_COMFYUI']?.replace(/\/+$/, '') ?? null
}
