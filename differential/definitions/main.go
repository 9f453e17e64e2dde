// Definitions prints random CustomResourceDefinitions of v1beta1, each with what apiextensions-apiserver v0.21
// makes of it: the same with defaults in v1, and that converted back.
//
//	definitions COUNT SEED
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strconv"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/fuzzer"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	generic "k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	meta "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// bytesMax is the size of the largest definition; the fuzzer makes schemas of any size.
const bytesMax = 20000

// shares are the shares of members that are removed from a definition.
var shares = []float64{0, 0.05, 0.2, 0.5}

// settings are the members of a spec that are of all versions, and their names in a version.
var settings = [][2]string{
	{"validation", "schema"},
	{"subresources", "subresources"},
	{"additionalPrinterColumns", "additionalPrinterColumns"},
}

func main() {
	count, err := strconv.Atoi(os.Args[1])
	must(err)
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	must(err)
	scheme := runtime.NewScheme()
	install.Install(scheme)
	random := rand.New(rand.NewSource(seed))
	funcs := generic.MergeFuzzerFuncs(meta.Funcs, fuzzer.Funcs)
	filler := generic.FuzzerFor(funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for n := 0; n < count; {
		hub, made := &apiextensions.CustomResourceDefinition{}, &v1beta1.CustomResourceDefinition{}
		filler.Fuzz(hub)
		hub.ClusterName = "" // Pintle drops this member, which v1.24 removed
		must(scheme.Convert(hub, made, nil))
		given := vary(random, made)
		if given == nil {
			continue
		}
		fmt.Fprintf(out, `{"in":%s,%s}`+"\n", text(given), results(scheme, given))
		n++
	}
}

// vary removes members of a definition at random, and those that contradict others; nil if nothing useful is
// left.
func vary(random *rand.Rand, made *v1beta1.CustomResourceDefinition) *v1beta1.CustomResourceDefinition {
	data := text(made)
	tree := map[string]any{}
	must(json.Unmarshal(data, &tree))
	if len(data) > bytesMax {
		return nil
	}
	thin(random, tree, shares[random.Intn(len(shares))], true)
	if spec, ok := tree["spec"].(map[string]any); ok {
		settle(random, spec)
	}
	tree["apiVersion"], tree["kind"] = "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"
	data, err := json.Marshal(tree)
	must(err)
	given := &v1beta1.CustomResourceDefinition{}
	if json.Unmarshal(data, given) != nil {
		return nil
	}
	return given
}

// thin removes members below the root.
func thin(random *rand.Rand, value any, share float64, isRoot bool) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if !isRoot && name != "name" && random.Float64() < share {
				delete(value, name)
			} else {
				thin(random, member, share, false)
			}
		}
	case []any:
		for _, item := range value {
			thin(random, item, share, false)
		}
	}
}

// settle leaves each setting in the spec or in versions: validation refuses both.
func settle(random *rand.Rand, spec map[string]any) {
	versions, _ := spec["versions"].([]any)
	if len(versions) == 0 {
		return
	}
	for _, setting := range settings {
		if random.Intn(2) == 0 {
			delete(spec, setting[0])
			continue
		}
		if spec[setting[0]] == nil {
			continue
		}
		for _, version := range versions {
			if version, ok := version.(map[string]any); ok {
				delete(version, setting[1])
			}
		}
	}
	if first, ok := versions[0].(map[string]any); ok && spec["version"] != nil {
		spec["version"] = first["name"]
	}
}

// results are the members of a row that upstream's scheme computes.
func results(scheme *runtime.Scheme, given *v1beta1.CustomResourceDefinition) string {
	made := given.DeepCopy()
	scheme.Default(made)
	hub, today := &apiextensions.CustomResourceDefinition{}, &v1.CustomResourceDefinition{}
	must(scheme.Convert(made, hub, nil))
	must(scheme.Convert(hub, today, nil))
	today.APIVersion, today.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	again, back := &apiextensions.CustomResourceDefinition{}, &v1beta1.CustomResourceDefinition{}
	must(scheme.Convert(today.DeepCopy(), again, nil))
	must(scheme.Convert(again, back, nil))
	back.APIVersion, back.Kind = "apiextensions.k8s.io/v1beta1", "CustomResourceDefinition"
	return fmt.Sprintf(`"today":%s,"back":%s`, text(today), text(back))
}

func text(object any) []byte {
	data, err := json.Marshal(object)
	must(err)
	return data
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
