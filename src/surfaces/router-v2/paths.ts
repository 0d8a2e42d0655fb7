/** Where the routes of this surface lie. */
export const MODELS_PATH = '/v2/models'
export const MODEL_ROUTE = `${MODELS_PATH}/:provider/:model`

export interface ModelParams {
  readonly provider: string
  readonly model: string
}

export interface RequestParams extends ModelParams {
  readonly requestId: string
}
