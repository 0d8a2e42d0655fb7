import * as sdk from '@comfyorg/sdk'

/** The official client for this base URL, which the package takes from the environment only. */
export function comfy(baseUrl: string, options: sdk.ComfyOptions = {}): sdk.Comfy {
  process.env[sdk.BASE_URL_ENV_VAR] = baseUrl
  try {
    return new sdk.Comfy(options)
  } finally {
    delete process.env[sdk.BASE_URL_ENV_VAR]
  }
}
