/** The parts of an OpenAPI document that the page shows. */
export interface SchemaNode {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly description?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly items?: SchemaNode
  readonly properties?: Readonly<Record<string, SchemaNode>>
  readonly additionalProperties?: SchemaNode | boolean
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly default?: unknown
}

interface ContentNode {
  readonly [mediaType: string]: { readonly schema?: SchemaNode }
}

export interface ResponseNode {
  readonly $ref?: string
  readonly description?: string
  readonly content?: ContentNode
}

export interface ParameterNode {
  readonly name: string
  readonly in: string
  readonly required?: boolean
  readonly description?: string
  readonly schema?: SchemaNode
}

export interface OperationNode {
  readonly operationId: string
  readonly tags?: readonly string[]
  readonly summary?: string
  readonly description?: string
  readonly parameters?: readonly (ParameterNode | { readonly $ref: string })[]
  readonly requestBody?: { readonly content: ContentNode }
  readonly responses: Readonly<Record<string, ResponseNode>>
}

export interface DocumentNode {
  readonly info: { readonly title: string; readonly version: string; readonly description?: string }
  readonly tags?: readonly { readonly name: string; readonly description?: string }[]
  readonly paths: Readonly<Record<string, Readonly<Record<string, OperationNode>>>>
  readonly components: {
    readonly schemas: Readonly<Record<string, SchemaNode>>
    readonly responses?: Readonly<Record<string, ResponseNode>>
    readonly parameters?: Readonly<Record<string, ParameterNode>>
  }
}
