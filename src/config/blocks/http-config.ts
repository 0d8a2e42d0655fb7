/** The listener: where it listens, under which names it is reached, and how much it takes. */
import { isIP } from 'node:net'
import { type Cidr, isLoopback } from '../readers/read-network.ts'
import { MIB } from '../readers/read-quantity.ts'
import type { SettingValues } from '../settings/settings.ts'

export interface HttpConfig {
  readonly host: string
  readonly port: number
  /** Whether only this machine can reach the listener. */
  readonly isLoopback: boolean
  /** Lower case, without port, with the names of `host` and `publicUrl`. The guard adds the loopback names. */
  readonly allowedHosts: readonly string[]
  readonly corsOrigins: readonly string[]
  /** Base of absolute links; null: the origin of the request. */
  readonly publicUrl: string | null
  /** '' or '/some/prefix'. */
  readonly mountPrefix: string
  /** Links of jobs begin with scheme and host. */
  readonly absoluteUrls: boolean
  readonly trustedProxies: readonly Cidr[]
  readonly maxBodyBytes: number
  /** Limits for all bodies together, and for those of one account. */
  readonly maxBodiesBytes: number
  readonly maxBodiesPerCallerBytes: number
  readonly maxStreams: number
  readonly brand: readonly string[]
  /** Whether the buffers of transfers are collected early. */
  readonly transferGc: boolean
}

// An open stream costs some 30 KiB; beyond this many, polling stays available.
const MAX_STREAMS = 10_000

export function toHttpConfig(values: SettingValues): HttpConfig {
  // Eight of the largest bodies in memory at once, half of them for one account. File uploads are streamed and do not count.
  const bodiesBytes = Math.max(256 * MIB, 8 * values.maxBody)
  return {
    // An empty host means every interface; Node would take it for "unspecified" and pick by itself.
    host: values.host === '' ? '0.0.0.0' : values.host,
    port: values.port,
    isLoopback: isLoopback(values.host),
    allowedHosts: toAllowedHosts(values),
    corsOrigins: values.corsOrigins,
    publicUrl: values.publicUrl,
    mountPrefix: values.mountPrefix,
    absoluteUrls: values.absoluteUrls,
    trustedProxies: values.trustedProxies,
    maxBodyBytes: values.maxBody,
    maxBodiesBytes: bodiesBytes,
    maxBodiesPerCallerBytes: bodiesBytes / 2,
    maxStreams: MAX_STREAMS,
    brand: values.brand,
    transferGc: true,
  }
}

function toAllowedHosts({ allowedHosts, host, publicUrl }: SettingValues): readonly string[] {
  const isName = host !== '' && isIP(host) === 0 && !isLoopback(host)
  const own = [...(isName ? [host.toLowerCase()] : []), ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])]
  return [...new Set([...allowedHosts, ...own])]
}
