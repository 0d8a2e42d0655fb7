/**
 * What an engine can run, in ComfyUI's own `object_info` form: the contract between engines, validation and the legacy
 * surface. What a declaration cannot say (a file must exist) is judged by the `checkInput` that validation is given.
 */
export type InputOptions = Readonly<Record<string, unknown>>
/** `[TYPE, options?]` or, for an old-style combo, `[[choice, …], options?]`. */
export type InputSpec = readonly [type: string | readonly unknown[], options?: InputOptions]

export interface NodeDefinition {
  readonly input: {
    readonly required?: Readonly<Record<string, InputSpec>>
    readonly optional?: Readonly<Record<string, InputSpec>>
    readonly hidden?: Readonly<Record<string, unknown>>
  }
  readonly input_order: Readonly<Record<string, readonly string[]>>
  readonly is_input_list: boolean
  readonly output: readonly unknown[]
  readonly output_is_list: readonly boolean[]
  readonly output_name: readonly string[]
  readonly name: string
  readonly display_name: string
  readonly category: string
  readonly output_node: boolean
  readonly has_intermediate_output: boolean
  readonly [extra: string]: unknown
}

export interface NodeCatalog {
  find(classType: string): NodeDefinition | null
  classTypes(): readonly string[]
  /** Inputs whose value the node itself judges, such as file names: min, max and combo checks do not apply to them. */
  selfCheckedInputs(classType: string): readonly string[]
  /**
   * The self-checked inputs that name a file without declaring an upload option, such as LoadLatent.latent. Absent: all of
   * them do; an engine with other self-checked inputs (CustomCombo.choice) must tell them apart here.
   */
  fileInputs?(classType: string): readonly string[]
  /**
   * Whether the class may judge values and links by rules of its own, which its description does not tell: then what the
   * description says about choices, bounds and link types is no ground for a refusal. Absent: no class does.
   */
  judgesItself?(classType: string): boolean
  /** The self-checked inputs that name a folder: every file of the caller that lies directly in it belongs to the job. */
  folderInputs?(classType: string): readonly string[]
}
