/**
 * The classes whose results follow from their inputs and the bytes of their files alone: the same graph gives the same bytes again. A
 * class is added here by whoever has read its code. Left out on purpose:
 * - sound and video, and LTXVPreprocess: another program on the machine makes or reads the bytes
 * - SaveAnimatedWEBP and SaveImageAdvanced: encoders that work in several threads
 * - previews, comparisons and SaveImageWebsocket: they show, and what they show is not kept or has a name by chance
 * - folders of files, WebcamCapture and RunModel: what they read is not named by the graph
 * - nodes that users wrote: nobody here knows what they read
 */
const CLASSES = `
  LoadImage LoadImageMask LoadImageOutput Painter EmptyImage SaveImage SaveAnimatedPNG SaveSVGNode PreviewAny ImageScale
  ImageScaleBy ImageScaleToTotalPixels ImageScaleToMaxDimension ResizeImageMaskNode ResizeImagesByShorterEdge
  ResizeImagesByLongerEdge ResizeAndPadImage FluxKontextImageScale ImageCrop ImageCropV2 ImageCropToMask
  CenterCropImages RandomCropImages ImagePadForOutpaint ImageRotate ImageFlip ImageStitch SplitImageToTileList
  ImageMergeTileList GetImageSize TextOverlay CropByBBoxes DrawBBoxes
  ImageInvert ImageBlend ImageBlur ImageSharpen ImageQuantize ImageAddNoise AdjustBrightness AdjustContrast
  NormalizeImages ColorTransfer Canny Morphology ImageRGBToYUV ImageYUVToRGB ImageHistogram
  ImageBatch BatchImagesNode RepeatImageBatch ImageFromBatch RebatchImages ImageDeduplication ImageGrid ShuffleDataset
  MergeImageLists
  MaskToImage ImageToMask ImageColorToMask SolidMask InvertMask CropMask MaskComposite FeatherMask GrowMask
  ThresholdMask ImageCompositeMasked PorterDuffImageComposite SplitImageWithAlpha JoinImageWithAlpha BatchMasksNode
  PrimitiveString PrimitiveStringMultiline PrimitiveInt PrimitiveFloat PrimitiveBoolean PrimitiveBoundingBox
  StringConcatenate StringSubstring StringLength CaseConverter StringTrim StringReplace StringContains StringCompare
  RegexMatch RegexExtract RegexReplace JsonExtractString StringFormat ConvertDictionaryToString ConvertArrayToString
  SaveText TextToLowercase TextToUppercase TruncateText AddTextPrefix AddTextSuffix ReplaceText StripWhitespace
  MergeTextLists
  CreateList SeedNode ColorToRGBInt ComfyMathExpression ComfyNumberConvert ResolutionSelector ComfyNotNode ComfyAndNode
  ComfyOrNode ComfySwitchNode CustomCombo
  EmptyLatentImage EmptySD3LatentImage EmptyFlux2LatentImage LatentUpscale LatentUpscaleBy LatentFromBatch
  RepeatLatentBatch LatentRotate LatentFlip LatentCrop LatentComposite LatentCompositeMasked LatentBlend LatentAdd
  LatentSubtract LatentMultiply LatentInterpolate LatentBatch LatentBatchSeedBehavior LatentConcat LatentCut
  SetLatentNoiseMask RebatchLatents BatchLatentsNode SaveLatent LoadLatent
  KarrasScheduler ExponentialScheduler PolyexponentialScheduler VPScheduler LaplaceScheduler SplitSigmas
  SplitSigmasDenoise FlipSigmas SetFirstSigma ExtendIntermediateSigmas ManualSigmas
`

export const REPEATABLE: ReadonlySet<string> = new Set(CLASSES.trim().split(/\s+/))

/** Inputs that become names of files, in which a token stands for the time. */
export const NAME_INPUTS: readonly string[] = ['filename_prefix']
