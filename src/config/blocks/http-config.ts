/** The listener: where it listens, under which names it is reached, and how much it takes. */
import { isIP } from 'node:net'
import { isLoopback } from '../readers/read-network.ts'
import { MIB } from '../readers/read-quantity.ts'
import type { ToAbsolute } from '../settings/setting-sources.ts'
import type { SettingValues } from '../settings/settings.ts'

export type HttpConfig = ReturnType<typeof toHttpConfig>

export function toHttpConfig(values: SettingValues) {
  const { host, port, corsOrigins, publicUrl, mountPrefix, absoluteUrls, trustedProxies, brand } = values
  return {
    ...{ port, corsOrigins, publicUrl, mountPrefix, absoluteUrls, trustedProxies, brand },
    // An empty host means every interface; Node would take it for "unspecified" and pick by itself.
    host: host === '' ? '0.0.0.0' : host,
    /** Whether only this machine can reach the listener. */
    isLoopback: isLoopback(host),
    allowedHosts: toAllowedHosts(values),
    maxBodyBytes: values.maxBody,
    /** Limits for all bodies in memory together, and for those of one account. One body of the largest size always fits. */
    maxBodiesBytes: Math.max(256 * MIB, values.maxBody),
    maxBodiesPerCallerBytes: Math.max(128 * MIB, values.maxBody),
    /** An open stream costs some 30 KiB; beyond this many, polling stays available. */
    maxStreams: 10_000,
  }
}

/** Lower case, without port, with the names of `host` and `publicUrl`. The guard adds the loopback names. */
function toAllowedHosts({ allowedHosts, host, publicUrl }: SettingValues): readonly string[] {
  const isName = host !== '' && isIP(host) === 0 && !isLoopback(host)
  const own = [...(isName ? [host.toLowerCase()] : []), ...(publicUrl === null ? [] : [new URL(publicUrl).hostname])]
  return [...new Set([...allowedHosts, ...own])]
}

/** ComfyUI's editor on a listener of its own: which files it is made of, and where it listens. */
export interface FrontendConfig {
  /** All paths are absolute. It may also hold a style sheet of the operator (`user.css`) and help for nodes (`docs`). */
  readonly directory: string
  readonly port: number
  /** Where browsers reach it; null: what the request says. */
  readonly publicUrl: string | null
  readonly templateDirectories: readonly string[]
}

/** null: no copy of the editor is named. */
export function toFrontendConfig(values: SettingValues, toAbsolute: ToAbsolute): FrontendConfig | null {
  if (values.comfyuiFrontend === null) return null
  const directory = toAbsolute('comfyuiFrontend', values.comfyuiFrontend)
  return {
    directory,
    port: values.comfyuiFrontendPort,
    publicUrl: values.comfyuiFrontendUrl,
    templateDirectories: values.comfyuiTemplates.map((folder) => toAbsolute('comfyuiTemplates', folder)),
  }
}
