import java.io.File;
import org.apache.hadoop.yarn.api.records.FinalApplicationStatus;
import org.apache.hadoop.yarn.api.records.Priority;
import org.apache.hadoop.yarn.api.records.Resource;
import org.apache.hadoop.yarn.client.api.AMRMClient;
import org.apache.hadoop.yarn.conf.YarnConfiguration;

/** An application master that works until a file appears, and then ends as it should. It asks for containers: the file's name is followed by MB and cores of each. */
public class YarnJob {
    public static void main(String[] given) throws Exception {
        AMRMClient<AMRMClient.ContainerRequest> manager = AMRMClient.createAMRMClient();
        manager.init(new YarnConfiguration());
        manager.start();
        manager.registerApplicationMaster("", 0, "");
        for (int next = 1; next < given.length; next += 2) {
            Resource size = Resource.newInstance(Integer.parseInt(given[next]), Integer.parseInt(given[next + 1]));
            manager.addContainerRequest(new AMRMClient.ContainerRequest(size, null, null, Priority.newInstance(1)));
        }
        while (!new File(given[0]).exists()) {
            manager.allocate(0.5f);
            Thread.sleep(500);
        }
        manager.unregisterApplicationMaster(FinalApplicationStatus.SUCCEEDED, "", "");
    }
}
